package main

import (
	"errors"
)

func lookUpLease(t *target) error {
	lease, err := t.issue("cloud/creds/app")
	if err != nil {
		return err
	}
	found, err := t.Sys().Lookup(lease.LeaseID)
	if err != nil {
		return err
	}
	return equal("id", found.Data["id"], any(lease.LeaseID))
}

func renewLease(t *target) error {
	lease, err := t.issue("cloud/creds/app")
	if err != nil {
		return err
	}
	renewed, err := t.Sys().Renew(lease.LeaseID, 600)
	if err != nil {
		return err
	}
	return errors.Join(equal("id", renewed.LeaseID, lease.LeaseID), equal("seconds", renewed.LeaseDuration, 600))
}

func revokeLease(t *target) error {
	return revoked(t, "one", func(lease string) error { return t.Sys().Revoke(lease) })
}

func revokePrefix(t *target) error {
	return revoked(t, "prefix", func(string) error { return t.Sys().RevokePrefix("revoked/prefix/creds") })
}

// revoked fails if anything of a lease is left when it has been revoked, though the cloud is slow.
func revoked(t *target, name string, revoke func(lease string) error) error {
	path := "revoked/" + name
	if err := t.engineAt(path); err != nil {
		return err
	}
	hurry, err := t.slowDeletions()
	if err != nil {
		return err
	}
	defer hurry()
	return t.leavesNothing(func() error {
		lease, err := t.issue(path + "/creds/fresh")
		if err != nil {
			return err
		}
		return revoke(lease.LeaseID)
	})
}

func deleteConfigAfterRevocation(t *target) error {
	if err := revoked(t, "config", func(string) error { return t.Sys().RevokePrefix("revoked/config") }); err != nil {
		return err
	}
	return nothing(t.Logical().Delete("revoked/config/config"))
}
