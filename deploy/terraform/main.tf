# The app registrations of both mounts, without a client secret. The engine may assign any role in the subscription, which
# is what it is for: limit `scope` of its role assignment, or add a condition, if it must not grant some roles.
# Each trusts the tokens of one issuer. How to use it: docs/hosting/aks.md

terraform {
  required_version = ">= 1.5"
  required_providers {
    azuread = {
      source  = "hashicorp/azuread"
      version = "~> 3.0"
    }
    azurerm = {
      source  = "hashicorp/azurerm"
      version = "~> 4.0"
    }
  }
}

provider "azurerm" {
  features {}
  subscription_id = var.subscription_id
}

variable "subscription_id" {
  type        = string
  description = "Subscription whose machines log in, and in which the engine assigns roles."
}

variable "issuer" {
  type        = string
  description = "Issuer of the tokens: the OIDC issuer URL of the AKS cluster, or https://HOST/v1/identity/oidc/plugins of cloudid."
}

variable "logins_subject" {
  type        = string
  default     = "system:serviceaccount:cloudid:cloudid"
  description = "Subject of the auth method's tokens: the service account of the pods, or plugin-identity:root:auth:ACCESSOR."
}

variable "engine_subject" {
  type        = string
  default     = "system:serviceaccount:cloudid:cloudid"
  description = "Subject of the engine's tokens: the service account of the pods, or plugin-identity:root:secret:ACCESSOR."
}

locals {
  subscription = "/subscriptions/${var.subscription_id}"
  audiences    = ["api://AzureADTokenExchange"]
}

# The auth method looks up the machines that log in.

resource "azuread_application" "logins" {
  display_name = "cloudid-logins"
}

resource "azuread_service_principal" "logins" {
  client_id = azuread_application.logins.client_id
}

resource "azuread_application_federated_identity_credential" "logins" {
  application_id = azuread_application.logins.id
  display_name   = "cloudid"
  issuer         = var.issuer
  subject        = var.logins_subject
  audiences      = local.audiences
}

resource "azurerm_role_definition" "logins" {
  name              = "cloudid logins"
  description       = "Looks up the machines that log in"
  scope             = local.subscription
  assignable_scopes = [local.subscription]
  permissions {
    actions = [
      "Microsoft.Authorization/permissions/read",
      "Microsoft.Compute/virtualMachineScaleSets/read",
      "Microsoft.Compute/virtualMachines/read",
      "Microsoft.ManagedIdentity/userAssignedIdentities/read",
      "Microsoft.Resources/subscriptions/providers/read",
    ]
  }
}

resource "azurerm_role_assignment" "logins" {
  scope              = local.subscription
  role_definition_id = azurerm_role_definition.logins.role_definition_resource_id
  principal_id       = azuread_service_principal.logins.object_id
}

# The secrets engine creates app registrations, which it then owns, and assigns roles to them.

data "azuread_service_principal" "graph" {
  client_id = "00000003-0000-0000-c000-000000000000"
}

resource "azuread_application" "engine" {
  display_name = "cloudid-engine"
}

resource "azuread_service_principal" "engine" {
  client_id = azuread_application.engine.client_id
}

resource "azuread_application_federated_identity_credential" "engine" {
  application_id = azuread_application.engine.id
  display_name   = "cloudid"
  issuer         = var.issuer
  subject        = var.engine_subject
  audiences      = local.audiences
}

resource "azuread_app_role_assignment" "engine" {
  app_role_id         = data.azuread_service_principal.graph.app_role_ids["Application.ReadWrite.OwnedBy"]
  principal_object_id = azuread_service_principal.engine.object_id
  resource_object_id  = data.azuread_service_principal.graph.object_id
}

resource "azurerm_role_definition" "engine" {
  name              = "cloudid engine"
  description       = "Assigns roles to the service principals that it creates"
  scope             = local.subscription
  assignable_scopes = [local.subscription]
  permissions {
    actions = [
      "Microsoft.Authorization/permissions/read",
      "Microsoft.Authorization/roleAssignments/delete",
      "Microsoft.Authorization/roleAssignments/read",
      "Microsoft.Authorization/roleAssignments/write",
      "Microsoft.Authorization/roleDefinitions/read",
    ]
  }
}

resource "azurerm_role_assignment" "engine" {
  scope              = local.subscription
  role_definition_id = azurerm_role_definition.engine.role_definition_resource_id
  principal_id       = azuread_service_principal.engine.object_id
}

output "logins_client_id" {
  value = azuread_application.logins.client_id
}

output "engine_client_id" {
  value = azuread_application.engine.client_id
}
