package main

import (
	"net/http"

	vault "github.com/hashicorp/vault/api"
)

// wrapping is a client that wants every answer wrapped.
func (t *target) wrapping() (*vault.Client, error) {
	made, err := client(t.url, t.Token())
	if err == nil {
		made.SetWrappingLookupFunc(func(string, string) string { return "60s" })
	}
	return made, err
}

func wrapCredentials(t *target) error {
	by, err := t.wrapping()
	if err != nil {
		return err
	}
	return t.leavesNothing(func() error {
		_, err := by.Logical().Read("cloud/creds/app")
		return refused(err, http.StatusBadRequest)
	})
}

func wrapToken(t *target) error {
	by, err := t.wrapping()
	if err != nil {
		return err
	}
	return addsNothing(t.tokens, func() error {
		_, err := by.Auth().Token().Create(&vault.TokenCreateRequest{TTL: "1h"})
		return refused(err, http.StatusBadRequest)
	})
}

func wrapLogin(t *target) error {
	by, err := t.wrapping()
	if err != nil {
		return err
	}
	return addsNothing(t.tokens, func() error {
		_, err := t.logIn(by)
		return refused(err, http.StatusBadRequest)
	})
}

// tokens are the accessors of all tokens.
func (t *target) tokens() (map[string]bool, error) {
	listed, err := t.Logical().List("auth/token/accessors")
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	for _, key := range listed.Data["keys"].([]any) {
		found[key.(string)] = true
	}
	return found, nil
}
