package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"

	vault "github.com/hashicorp/vault/api"
)

func (t *target) token(request vault.TokenCreateRequest) (*vault.Secret, error) {
	request.TTL = "1h"
	return t.Auth().Token().Create(&request)
}

// The library always sends `entity_alias`, and the token's type, empty.
func createToken(t *target) error {
	secret, err := t.token(vault.TokenCreateRequest{Policies: []string{"app"}, Metadata: map[string]string{"team": "west"}})
	return silent(secret, err)
}

func lookUpToken(t *target) error {
	made, err := t.token(vault.TokenCreateRequest{Policies: []string{"app"}})
	if err != nil {
		return err
	}
	found, err := t.Auth().Token().Lookup(made.Auth.ClientToken)
	if err != nil {
		return err
	}
	id, err := found.TokenID()
	if err != nil {
		return err
	}
	policies, err := found.TokenPolicies()
	if err != nil {
		return err
	}
	ttl, err := found.TokenTTL()
	if err != nil {
		return err
	}
	own, err := client(t.url, made.Auth.ClientToken)
	if err != nil {
		return err
	}
	itself, err := own.Auth().Token().LookupSelf()
	if err != nil {
		return err
	}
	accessor, err := itself.TokenAccessor()
	return errors.Join(
		err,
		equal("id", id, made.Auth.ClientToken),
		equal("accessor", accessor, made.Auth.Accessor),
		equal("TTL is positive", ttl > 0, true),
		contains("policies", policies, "app"),
	)
}

func renewToken(t *target) error {
	made, err := t.token(vault.TokenCreateRequest{})
	if err != nil {
		return err
	}
	renewed, err := t.Auth().Token().Renew(made.Auth.ClientToken, 1800)
	if err != nil {
		return err
	}
	own, err := client(t.url, made.Auth.ClientToken)
	if err != nil {
		return err
	}
	again, err := own.Auth().Token().RenewSelf(600)
	if err != nil {
		return err
	}
	return errors.Join(equal("first", renewed.Auth.LeaseDuration, 1800), equal("second", again.Auth.LeaseDuration, 600))
}

func revokeToken(t *target) error {
	made, err := t.token(vault.TokenCreateRequest{})
	if err != nil {
		return err
	}
	if err := t.Auth().Token().RevokeTree(made.Auth.ClientToken); err != nil {
		return err
	}
	_, err = t.Auth().Token().Lookup(made.Auth.ClientToken)
	return refused(err, http.StatusForbidden)
}

func handleAccessor(t *target) error {
	made, err := t.token(vault.TokenCreateRequest{})
	if err != nil {
		return err
	}
	accessor := made.Auth.Accessor
	listed, err := t.Logical().List("auth/token/accessors")
	if err != nil {
		return err
	}
	var keys []string
	for _, key := range listed.Data["keys"].([]any) {
		keys = append(keys, key.(string))
	}
	if err := contains("accessors", keys, accessor); err != nil {
		return err
	}
	if _, err := t.Auth().Token().LookupAccessor(accessor); err != nil {
		return err
	}
	if _, err := t.Auth().Token().RenewAccessor(accessor, 600); err != nil {
		return err
	}
	if err := t.Auth().Token().RevokeAccessor(accessor); err != nil {
		return err
	}
	_, err = t.Auth().Token().Lookup(made.Auth.ClientToken)
	return refused(err, http.StatusForbidden)
}

func unknownAccessor(t *target) error {
	_, lookUp := t.Auth().Token().LookupAccessor("unknown")
	_, renew := t.Auth().Token().RenewAccessor("unknown", 600)
	return errors.Join(refused(lookUp, http.StatusBadRequest), refused(renew, http.StatusBadRequest))
}

func readPages(t *target) error {
	whole, err := t.Logical().List("sys/policies/acl")
	if err != nil {
		return err
	}
	query := url.Values{"list": {"true"}, "limit": {"1"}}
	for _, wanted := range whole.Data["keys"].([]any) {
		page, err := t.Logical().ReadWithData("sys/policies/acl", query)
		if err != nil {
			return err
		}
		if page == nil {
			return fmt.Errorf("no page with %v", wanted)
		}
		if err := equal("page", fmt.Sprint(page.Data["keys"]), fmt.Sprint([]any{wanted})); err != nil {
			return err
		}
		query.Set("after", wanted.(string))
	}
	return nothing(t.Logical().ReadWithData("sys/policies/acl", query))
}

func createFromRole(t *target) error {
	role := fields{"allowed_policies": "app", "token_period": 0, "renewable": true, "orphan": false}
	if err := silentWrite(t.Logical().Write("auth/token/roles/builder", role)); err != nil {
		return err
	}
	made, err := t.Auth().Token().CreateWithRole(&vault.TokenCreateRequest{Policies: []string{"app"}, TTL: "1h"}, "builder")
	return silent(made, err)
}

// silentWrite is silent for an answer that may have no body.
func silentWrite(secret *vault.Secret, err error) error {
	if secret == nil {
		return err
	}
	return silent(secret, err)
}

func withoutDefaultPolicy(t *target) error {
	made, err := t.token(vault.TokenCreateRequest{Policies: []string{"app", "default"}, NoDefaultPolicy: true})
	if err != nil {
		return err
	}
	return errors.Join(
		contains("policies", made.Auth.Policies, "app"),
		equal("policies", len(made.Auth.Policies), 1),
	)
}
