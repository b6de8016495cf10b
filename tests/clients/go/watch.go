package main

import (
	"errors"
	"fmt"
	"time"

	vault "github.com/hashicorp/vault/api"
)

const patience = 10 * time.Second

func watchToken(t *target) error {
	own, err := client(t.url, "")
	if err != nil {
		return err
	}
	secret, err := t.logIn(own)
	if err != nil {
		return err
	}
	own.SetToken(secret.Auth.ClientToken)
	if err := watch(own, secret); err != nil {
		return err
	}
	_, err = own.Auth().Token().LookupSelf()
	return err
}

func watchLease(t *target) error {
	if err := t.write("cloud/roles/brief", t.engineRole("3s")); err != nil {
		return err
	}
	secret, err := t.issue("cloud/creds/brief")
	if err != nil {
		return err
	}
	if err := watch(t.Client, secret); err != nil {
		return err
	}
	return t.Sys().Revoke(secret.LeaseID)
}

// watch waits until a secret of three seconds was renewed twice: at once, and when two thirds of its time were over.
func watch(by *vault.Client, secret *vault.Secret) error {
	watcher, err := by.NewLifetimeWatcher(&vault.LifetimeWatcherInput{
		Secret: secret, RenewBehavior: vault.RenewBehaviorErrorOnErrors,
	})
	if err != nil {
		return err
	}
	go watcher.Start()
	defer watcher.Stop()
	for renewals := 0; renewals < 2; renewals++ {
		select {
		case <-watcher.RenewCh():
		case err := <-watcher.DoneCh():
			return errors.Join(fmt.Errorf("done after %d renewals", renewals), err)
		case <-time.After(patience):
			return fmt.Errorf("only %d renewals", renewals)
		}
	}
	return nil
}
