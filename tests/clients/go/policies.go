package main

import "errors"

const rules = `path "cloud/creds/*" { capabilities = ["read"] }`

func writePolicy(t *target) error {
	return throughItsLife(t, "ours")
}

func nameOfPolicy(t *target) error {
	return errors.Join(throughItsLife(t, "team/app"), throughItsLife(t, "user@example.com"))
}

func throughItsLife(t *target, name string) error {
	if err := t.Sys().PutPolicy(name, rules); err != nil {
		return err
	}
	read, err := t.Sys().GetPolicy(name)
	if err != nil {
		return err
	}
	listed, err := t.Sys().ListPolicies()
	if err != nil {
		return err
	}
	problem := errors.Join(equal("rules", read, rules), contains("policies", listed, name))
	if err := t.Sys().DeletePolicy(name); err != nil {
		return err
	}
	read, err = t.Sys().GetPolicy(name)
	return errors.Join(problem, err, equal("rules at the end", read, ""))
}
