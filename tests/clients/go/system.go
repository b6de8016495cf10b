package main

import (
	"errors"

	vault "github.com/hashicorp/vault/api"
)

func help(t *target) error {
	return t.leavesNothing(func() error {
		answer, err := t.Help("cloud/creds/app")
		if err != nil {
			return err
		}
		return equal("has a text", answer.Help != "", true)
	})
}

func health(t *target) error {
	read, err := t.Sys().Health()
	if err != nil {
		return err
	}
	return errors.Join(
		equal("initialized", read.Initialized, true),
		equal("sealed", read.Sealed, false),
		equal("standby", read.Standby, false),
		equal("has a time", read.ServerTimeUTC > 0, true),
		equal("has a version", read.Version != "", true),
	)
}

func sealStatus(t *target) error {
	read, err := t.Sys().SealStatus()
	if err != nil {
		return err
	}
	initialised, err := t.Sys().InitStatus()
	return errors.Join(
		err,
		equal("initialised", initialised, true),
		equal("initialized", read.Initialized, true),
		equal("sealed", read.Sealed, false),
		equal("has a type", read.Type != "", true),
	)
}

func leader(t *target) error {
	read, err := t.Sys().Leader()
	if err != nil {
		return err
	}
	return equal("is self", read.IsSelf, true)
}

func capabilities(t *target) error {
	own, err := t.Sys().CapabilitiesSelf("cloud/creds/app")
	if err != nil {
		return err
	}
	made, err := t.token(vault.TokenCreateRequest{Policies: []string{"default"}})
	if err != nil {
		return err
	}
	other, err := t.Sys().Capabilities(made.Auth.ClientToken, "cloud/creds/app")
	return errors.Join(err, contains("own", own, "root"), contains("other", other, "deny"))
}
