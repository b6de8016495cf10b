# Everything that the provider can make of a service of ours. `changed` turns each resource into another state of itself.

terraform {
  required_providers {
    vault = { source = "hashicorp/vault" }
  }
}

variable "changed" {
  type    = bool
  default = false
}

variable "tenant" {}
variable "subscription" {}
variable "client_id" {}
variable "client_secret" { sensitive = true }
variable "application" {}
variable "group" {}
variable "audit_file" {}

provider "vault" {}

locals {
  scope = "/subscriptions/${var.subscription}"
}

resource "vault_policy" "app" {
  name   = "Team/App"
  policy = "path \"tf-cloud/creds/*\" {\n  capabilities = [${var.changed ? "\"read\", \"update\"" : "\"read\""}]\n}\n"
}

resource "vault_auth_backend" "login" {
  type        = "azure"
  path        = "tf-login"
  description = var.changed ? "changed" : "made"
  tune {
    default_lease_ttl = var.changed ? "2h" : "1h"
    max_lease_ttl     = "24h"
    token_type        = "default-service"
  }
}

resource "vault_azure_auth_backend_config" "login" {
  backend       = vault_auth_backend.login.path
  tenant_id     = var.tenant
  client_id     = var.client_id
  client_secret = var.client_secret
  resource      = "https://management.azure.com/"
  max_retries   = var.changed ? 5 : 3
  retry_delay   = var.changed ? 10 : 5
}

resource "vault_azure_auth_backend_role" "web" {
  backend                     = vault_auth_backend.login.path
  role                        = "web"
  bound_subscription_ids      = [var.subscription]
  bound_resource_groups       = var.changed ? ["Prod", "batch"] : ["Prod"]
  bound_locations             = ["West US 2"]
  bound_service_principal_ids = ["*"]
  token_policies              = [vault_policy.app.name]
  token_bound_cidrs           = ["10.1.2.3", "10.0.0.0/8"]
  token_ttl                   = var.changed ? 1200 : 600
  token_max_ttl               = 3600
}

resource "vault_azure_secret_backend" "engine" {
  path              = "tf-cloud"
  description       = var.changed ? "changed" : "made"
  tenant_id         = var.tenant
  subscription_id   = var.subscription
  client_id         = var.client_id
  client_secret     = var.client_secret
  environment       = "AzurePublicCloud"
  root_password_ttl = var.changed ? 8640000 : 15724800
}

resource "vault_azure_secret_backend_role" "fresh" {
  backend            = vault_azure_secret_backend.engine.path
  role               = "fresh"
  ttl                = var.changed ? "600" : "300"
  max_ttl            = "3600"
  permanently_delete = var.changed
  tags               = ["team:west", "cost:7"]
  azure_roles {
    role_name = var.changed ? "Contributor" : "Reader"
    scope     = "${local.scope}/"
  }
  azure_groups {
    group_name = var.group
  }
}

resource "vault_azure_secret_backend_role" "existing" {
  backend               = vault_azure_secret_backend.engine.path
  role                  = "existing"
  application_object_id = var.application
  ttl                   = var.changed ? "1200" : "600"
}

resource "vault_mount" "plain" {
  path                      = "tf-plain/inner"
  type                      = "azure"
  description               = var.changed ? "changed" : "made"
  default_lease_ttl_seconds = var.changed ? 7200 : 3600
  max_lease_ttl_seconds     = 86400
}

resource "vault_token_auth_backend_role" "ci" {
  role_name              = "CI"
  allowed_policies       = [vault_policy.app.name]
  disallowed_policies    = ["root"]
  orphan                 = var.changed
  renewable              = true
  token_period           = var.changed ? "7200" : "3600"
  token_explicit_max_ttl = "86400"
  path_suffix            = "ci"
}

resource "vault_token" "ci" {
  policies  = [lower(vault_policy.app.name)]
  ttl       = "1h"
  renewable = true
  metadata  = { team = var.changed ? "east" : "west" }
}

resource "vault_quota_rate_limit" "login" {
  name     = "Tf-Login"
  path     = "auth/${vault_auth_backend.login.path}/"
  rate     = var.changed ? 2000 : 1000
  interval = 60
}

resource "vault_quota_lease_count" "engine" {
  name       = "Tf-Leases"
  path       = "${vault_azure_secret_backend.engine.path}/"
  max_leases = var.changed ? 200 : 100
}

resource "vault_audit" "file" {
  type    = "file"
  path    = "tf"
  options = { file_path = var.audit_file }
}

resource "vault_audit_request_header" "agent" {
  name = "X-Forwarded-For"
  hmac = var.changed
}

data "vault_azure_access_credentials" "existing" {
  backend    = "tf-cloud"
  role       = "existing"
  depends_on = [vault_azure_secret_backend_role.existing]
}

resource "vault_azure_secret_backend_static_role" "kept" {
  backend               = vault_azure_secret_backend.engine.path
  role                  = "kept"
  application_object_id = var.application
  ttl                   = var.changed ? 8640000 : 7776000
  metadata              = { team = var.changed ? "east" : "west" }
}
