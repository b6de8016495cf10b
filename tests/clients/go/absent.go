package main

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	vault "github.com/hashicorp/vault/api"
)

func readAbsentRole(t *target) error {
	return errors.Join(nothing(t.Logical().Read("auth/cloud/role/absent")), nothing(t.Logical().Read("cloud/roles/absent")))
}

// A 404 would give nothing, without its reason.
func issueOfAbsentRole(t *target) error {
	_, err := t.Logical().Read("cloud/creds/absent")
	if err == nil || !strings.Contains(err.Error(), "the role does not exist") {
		return fmt.Errorf("no reason: %v", err)
	}
	_, rotation := t.Logical().Write("cloud/rotate-role/absent", nil)
	_, token := t.Logical().Write("cloud/token/absent", nil)
	return errors.Join(refused(err, http.StatusBadRequest), refused(rotation, http.StatusBadRequest), refused(token, http.StatusBadRequest))
}

func listAbsentRoles(t *target) error {
	if err := t.Sys().EnableAuthWithOptions("bare", &vault.EnableAuthOptions{Type: "azure"}); err != nil {
		return err
	}
	if err := t.Sys().Mount("bare", &vault.MountInput{Type: "azure"}); err != nil {
		return err
	}
	return errors.Join(
		nothing(t.Logical().List("auth/bare/role")),
		nothing(t.Logical().List("bare/roles")),
		nothing(t.Logical().List("sys/leases/lookup/bare")),
	)
}

func deleteAbsentLoginRole(t *target) error {
	return nothing(t.Logical().Delete("auth/cloud/role/absent"))
}

func deleteAbsentEngineRole(t *target) error {
	_, err := t.Logical().Delete("cloud/roles/absent")
	return refused(err, http.StatusNotFound)
}

func readAbsentPolicy(t *target) error {
	rules, err := t.Sys().GetPolicy("absent")
	return errors.Join(err, equal("rules", rules, ""), nothing(t.Logical().Read("sys/policies/acl/absent")))
}

func readAbsentTokenRole(t *target) error {
	return nothing(t.Logical().Read("auth/token/roles/absent"))
}

func readAbsentLoginConfig(t *target) error {
	if err := t.Sys().EnableAuthWithOptions("unset", &vault.EnableAuthOptions{Type: "azure"}); err != nil {
		return err
	}
	return nothing(t.Logical().Read("auth/unset/config"))
}

func readAbsentEngineConfig(t *target) error {
	if err := t.Sys().Mount("unset", &vault.MountInput{Type: "azure"}); err != nil {
		return err
	}
	config, err := t.Logical().Read("unset/config")
	if err != nil {
		return err
	}
	if config == nil {
		return errors.New("nothing instead of empty values")
	}
	for _, name := range []string{"tenant_id", "subscription_id", "client_id", "environment"} {
		if err := equal(name, config.Data[name], any("")); err != nil {
			return err
		}
	}
	return numbers(config.Data, map[string]int64{"root_password_ttl": 0, "identity_token_ttl": 0})
}
