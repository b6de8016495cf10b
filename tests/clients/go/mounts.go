package main

import (
	"errors"
	"fmt"
	"reflect"

	vault "github.com/hashicorp/vault/api"
)

// usual is what the peer's tools send when nothing is asked for.
func usual() vault.EnableAuthOptions {
	return vault.EnableAuthOptions{
		Type:        "azure",
		Description: "ours",
		Config:      vault.AuthConfigInput{DefaultLeaseTTL: "", MaxLeaseTTL: "", Options: nil},
		Options:     map[string]string{},
	}
}

func enableAuth(t *target) error {
	options := usual()
	if err := t.Sys().EnableAuthWithOptions("one/auth", &options); err != nil {
		return err
	}
	listed, err := t.Sys().ListAuth()
	if err != nil {
		return err
	}
	mount := listed["one/auth/"]
	if mount == nil {
		return errors.New("not listed")
	}
	problem := errors.Join(equal("type", mount.Type, "azure"), equal("description", mount.Description, "ours"))
	if err := t.Sys().DisableAuth("one/auth"); err != nil {
		return err
	}
	listed, err = t.Sys().ListAuth()
	if err == nil && listed["one/auth/"] != nil {
		err = errors.New("still listed")
	}
	return errors.Join(problem, err)
}

func readAuth(t *target) error {
	mount, err := t.Sys().GetAuth("cloud")
	if err != nil {
		return err
	}
	return errors.Join(equal("type", mount.Type, "cloud"), equal("has accessor", mount.Accessor != "", true))
}

func tuneAuth(t *target) error {
	options := usual()
	if err := t.Sys().EnableAuthWithOptions("two/auth", &options); err != nil {
		return err
	}
	if err := t.Sys().TuneMount("auth/two/auth", vault.MountConfigInput{DefaultLeaseTTL: "30m", MaxLeaseTTL: "1h"}); err != nil {
		return err
	}
	tuned, err := t.Sys().MountConfig("auth/two/auth")
	if err != nil {
		return err
	}
	return errors.Join(equal("default", tuned.DefaultLeaseTTL, 1800), equal("maximum", tuned.MaxLeaseTTL, 3600))
}

func enableEngine(t *target) error {
	if err := t.Sys().Mount("three/engine", &vault.MountInput{Type: "azure", Description: "ours"}); err != nil {
		return err
	}
	mount, err := t.Sys().GetMount("three/engine")
	if err != nil {
		return err
	}
	listed, err := t.Sys().ListMounts()
	if err != nil {
		return err
	}
	problem := errors.Join(
		equal("type", mount.Type, "azure"),
		equal("description", mount.Description, "ours"),
		equal("listed", listed["three/engine/"] != nil, true),
	)
	if err := t.Sys().Unmount("three/engine"); err != nil {
		return err
	}
	listed, err = t.Sys().ListMounts()
	return errors.Join(problem, err, equal("listed at the end", listed["three/engine/"] != nil, false))
}

func tuneEngine(t *target) error {
	if err := t.Sys().Mount("four", &vault.MountInput{Type: "azure"}); err != nil {
		return err
	}
	ttl, description := "30m", ""
	input := vault.TuneMountConfigInput{DefaultLeaseTTL: &ttl, Description: &description}
	if err := t.Sys().TuneMountAllowNil("four", input); err != nil {
		return err
	}
	tuned, err := t.Sys().MountConfig("four")
	if err != nil {
		return err
	}
	return equal("default", tuned.DefaultLeaseTTL, 1800)
}

func tuneOneThing(t *target) error {
	config := vault.MountConfigInput{DefaultLeaseTTL: "1h", MaxLeaseTTL: "2h"}
	if err := t.Sys().Mount("tuned", &vault.MountInput{Type: "azure", Config: config}); err != nil {
		return err
	}
	if err := t.Sys().TuneMount("tuned", vault.MountConfigInput{ListingVisibility: "unauth"}); err != nil {
		return err
	}
	tuned, err := t.Sys().MountConfig("tuned")
	if err != nil {
		return err
	}
	return errors.Join(equal("default", tuned.DefaultLeaseTTL, 3600), equal("maximum", tuned.MaxLeaseTTL, 7200))
}

func tuneEverything(t *target) error {
	if err := t.Sys().Mount("five", &vault.MountInput{Type: "azure"}); err != nil {
		return err
	}
	input := vault.MountConfigInput{
		AuditNonHMACRequestKeys:   []string{"request"},
		AuditNonHMACResponseKeys:  []string{"response"},
		PassthroughRequestHeaders: []string{"X-One"},
		AllowedResponseHeaders:    []string{"X-Two"},
		ListingVisibility:         "unauth",
		IdentityTokenKey:          "key",
	}
	if err := t.Sys().TuneMount("five", input); err != nil {
		return err
	}
	tuned, err := t.Sys().MountConfig("five")
	if err != nil {
		return err
	}
	got := []any{
		tuned.AuditNonHMACRequestKeys, tuned.AuditNonHMACResponseKeys, tuned.PassthroughRequestHeaders,
		tuned.AllowedResponseHeaders, tuned.ListingVisibility, tuned.IdentityTokenKey,
	}
	want := []any{
		input.AuditNonHMACRequestKeys, input.AuditNonHMACResponseKeys, input.PassthroughRequestHeaders,
		input.AllowedResponseHeaders, input.ListingVisibility, input.IdentityTokenKey,
	}
	if !reflect.DeepEqual(got, want) {
		return fmt.Errorf("%v instead of %v", got, want)
	}
	return nil
}

func moveMount(t *target) error {
	if err := t.engineAt("six/old"); err != nil {
		return err
	}
	if err := t.Sys().Remount("six/old", "six/new"); err != nil {
		return err
	}
	role, err := t.Logical().Read("six/new/roles/app")
	return errors.Join(err, equal("role moved along", role != nil, true))
}

func enableAgain(t *target) error {
	for range 2 {
		if err := t.engineAt("seven"); err != nil {
			return err
		}
		if _, err := t.issue("seven/creds/app"); err != nil {
			return err
		}
		if err := t.Sys().Unmount("seven"); err != nil {
			return err
		}
	}
	return nil
}
