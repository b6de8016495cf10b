package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/coreos/go-oidc/v3/oidc"
)

// verifyToken is another service: it knows the address of the issuer, and who it is itself.
func verifyToken(t *target) error {
	ctx := context.Background()
	policy := `path "identity/oidc/token/shop" { capabilities = ["read"] }`
	role := fields{"bound_subscription_ids": t.world.Subscriptions, "token_policies": "asks"}
	if err := errors.Join(
		t.Sys().PutPolicy("asks", policy),
		t.write("auth/cloud/role/asks", role),
		t.write("identity/oidc/role/shop", fields{"client_id": "https://shop.example"}),
	); err != nil {
		return err
	}
	machine, err := client(t.url, "")
	if err != nil {
		return err
	}
	login, err := t.logInAs(machine, "asks")
	if err != nil {
		return err
	}
	machine.SetToken(login.Auth.ClientToken)
	given, err := machine.Logical().Read("identity/oidc/token/shop")
	if err != nil {
		return err
	}
	text := given.Data["token"].(string)
	provider, err := oidc.NewProvider(ctx, t.url+"/v1/identity/oidc")
	if err != nil {
		return err
	}
	token, err := provider.Verifier(&oidc.Config{ClientID: "https://shop.example"}).Verify(ctx, text)
	if err != nil {
		return err
	}
	var said struct {
		Name string `json:"vm_name"`
		Role string
	}
	if err := token.Claims(&said); err != nil {
		return err
	}
	if said.Name != t.world.Machines[0].Name || said.Role != "asks" {
		return fmt.Errorf("the token says %+v", said)
	}
	if _, err := provider.Verifier(&oidc.Config{ClientID: "https://other.example"}).Verify(ctx, text); err == nil {
		return errors.New("a service that the token is not for takes it")
	}
	plugins, err := oidc.NewProvider(ctx, t.url+"/v1/identity/oidc/plugins")
	if err != nil {
		return err
	}
	check := oidc.Config{ClientID: "https://shop.example", SkipIssuerCheck: true}
	if _, err := plugins.Verifier(&check).Verify(ctx, text); err == nil {
		return errors.New("a key of the other issuer has signed")
	}
	return nil
}
