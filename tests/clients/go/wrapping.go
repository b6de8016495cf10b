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

// unwrapOnce unwraps an answer, and fails if that can be done again.
func (t *target) unwrapOnce(wrapped *vault.Secret, err error) (*vault.Secret, error) {
	if err != nil {
		return nil, err
	}
	token := wrapped.WrapInfo.Token
	shown, err := t.Logical().Unwrap(token)
	if err != nil {
		return nil, err
	}
	_, err = t.Logical().Unwrap(token)
	return shown, refused(err, http.StatusBadRequest)
}

func wrapCredentials(t *target) error {
	by, err := t.wrapping()
	if err != nil {
		return err
	}
	shown, err := t.unwrapOnce(by.Logical().Read("cloud/creds/app"))
	if err != nil {
		return err
	}
	defer t.Sys().Revoke(shown.LeaseID)
	return equal("secret is there", shown.Data["client_secret"] != "", true)
}

func wrapToken(t *target) error {
	by, err := t.wrapping()
	if err != nil {
		return err
	}
	shown, err := t.unwrapOnce(by.Auth().Token().Create(&vault.TokenCreateRequest{TTL: "1h"}))
	if err != nil {
		return err
	}
	_, err = t.Auth().Token().Lookup(shown.Auth.ClientToken)
	return err
}

func wrapLogin(t *target) error {
	by, err := t.wrapping()
	if err != nil {
		return err
	}
	wrapped, err := t.logIn(by)
	if err != nil {
		return err
	}
	accessor := wrapped.WrapInfo.WrappedAccessor
	shown, err := t.unwrapOnce(wrapped, nil)
	if err != nil {
		return err
	}
	return equal("accessor", shown.Auth.Accessor, accessor)
}

// unwrapWithItself shows the wrapping token as the client's own.
func unwrapWithItself(t *target) error {
	by, err := t.wrapping()
	if err != nil {
		return err
	}
	wrapped, err := by.Logical().Write("sys/wrapping/wrap", map[string]any{"a": "b"})
	if err != nil {
		return err
	}
	bare, err := client(t.url, wrapped.WrapInfo.Token)
	if err != nil {
		return err
	}
	shown, err := bare.Logical().Unwrap("")
	if err != nil {
		return err
	}
	return equal("content", shown.Data["a"], "b")
}

func lookUpWrapping(t *target) error {
	by, err := t.wrapping()
	if err != nil {
		return err
	}
	wrapped, err := by.Logical().Write("sys/wrapping/wrap", map[string]any{"a": "b"})
	if err != nil {
		return err
	}
	body := map[string]any{"token": wrapped.WrapInfo.Token}
	told, err := t.Logical().Write("sys/wrapping/lookup", body)
	if err != nil {
		return err
	}
	if err := equal("path", told.Data["creation_path"], "sys/wrapping/wrap"); err != nil {
		return err
	}
	again, err := t.Logical().Write("sys/wrapping/rewrap", body)
	if err != nil {
		return err
	}
	_, err = t.Logical().Unwrap(wrapped.WrapInfo.Token)
	if err := refused(err, http.StatusBadRequest); err != nil {
		return err
	}
	_, err = t.unwrapOnce(again, nil)
	return err
}
