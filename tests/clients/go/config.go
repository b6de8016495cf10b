package main

import (
	"errors"

	vault "github.com/hashicorp/vault/api"
)

const second = 1_000_000_000

func (t *target) authAt(path, kind string, extra fields) (*vault.Secret, error) {
	if err := t.Sys().EnableAuthWithOptions(path, &vault.EnableAuthOptions{Type: kind}); err != nil {
		return nil, err
	}
	config := t.loginConfig()
	for name, value := range extra {
		config[name] = value
	}
	if err := t.write("auth/"+path+"/config", config); err != nil {
		return nil, err
	}
	return t.Logical().Read("auth/" + path + "/config")
}

func loginConfig(t *target) error {
	read, err := t.authAt("typed", "cloud", fields{"retry_delay": "5s", "max_retry_delay": 90, "max_retries": 2})
	if err != nil {
		return err
	}
	return numbers(read.Data, map[string]int64{
		"retry_delay": 5, "max_retry_delay": 90, "max_retries": 2,
		"identity_token_ttl": 3600, "rotation_period": 0, "rotation_window": 0,
	})
}

// The peer answers nanoseconds, and its clients compute so.
func loginConfigOfPeer(t *target) error {
	read, err := t.authAt("typed-azure", "azure", fields{"retry_delay": "5s"})
	if err != nil {
		return err
	}
	return numbers(read.Data, map[string]int64{"retry_delay": 5 * second, "max_retry_delay": 60 * second})
}

func loginConfigAgain(t *target) error {
	read, err := t.authAt("again", "cloud", fields{"retry_delay": "5s"})
	if err != nil {
		return err
	}
	if err := silentWrite(t.Logical().Write("auth/again/config", read.Data)); err != nil {
		return err
	}
	again, err := t.Logical().Read("auth/again/config")
	if err != nil {
		return err
	}
	for name, value := range read.Data {
		if err := equal(name, again.Data[name], value); err != nil {
			return err
		}
	}
	return nil
}

func engineConfig(t *target) error {
	if err := t.engineAt("typed"); err != nil {
		return err
	}
	if err := t.write("typed/config", fields{"root_password_ttl": "90d", "rotation_period": 86400}); err != nil {
		return err
	}
	read, err := t.Logical().Read("typed/config")
	if err != nil {
		return err
	}
	_, isShown := read.Data["client_secret"]
	return errors.Join(
		equal("the secret is shown", isShown, false),
		equal("tenant", read.Data["tenant_id"], any(t.world.Tenant)),
		numbers(read.Data, map[string]int64{
			"root_password_ttl": 90 * 86400, "identity_token_ttl": 3600, "rotation_period": 86400, "rotation_window": 0,
		}),
	)
}

func mountType(t *target) error {
	if err := t.engineAt("kinds"); err != nil {
		return err
	}
	ours, err := t.Logical().Read("cloud/roles/app")
	if err != nil {
		return err
	}
	peers, err := t.Logical().Read("kinds/roles/app")
	if err != nil {
		return err
	}
	return errors.Join(equal("ours", ours.MountType, "cloud"), equal("the peer's", peers.MountType, "azure"))
}
