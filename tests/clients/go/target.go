package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	vault "github.com/hashicorp/vault/api"
)

const resource = "https://management.azure.com/"

// target is a server with its simulated cloud. Both default mounts are configured: the role "web" logs in the cloud's
// first machine, and the role "app" issues passwords of its second application.
type target struct {
	*vault.Client
	url   string
	cloud string
	world world
}

type world struct {
	Tenant        string
	Subscriptions []string
	Applications  []struct {
		ClientID     string `json:"client_id"`
		ClientSecret string `json:"client_secret"`
		ObjectID     string `json:"object_id"`
	}
	Machines []struct {
		Name          string
		Subscription  string
		ResourceGroup string `json:"resource_group"`
	}
}

type fields = map[string]any

func prepare(address, token, cloud string) (*target, error) {
	made, err := client(address, token)
	if err != nil {
		return nil, err
	}
	t := &target{Client: made, url: address, cloud: cloud}
	if err := t.ask("/simulator/world", nil, &t.world); err != nil {
		return nil, err
	}
	if err := t.write("auth/cloud/config", t.loginConfig()); err != nil {
		return nil, err
	}
	role := fields{"bound_subscription_ids": t.world.Subscriptions, "token_ttl": "3s", "token_max_ttl": "1h"}
	if err := t.write("auth/cloud/role/web", role); err != nil {
		return nil, err
	}
	if err := t.write("cloud/config", t.engineConfig()); err != nil {
		return nil, err
	}
	if err := t.write("cloud/roles/app", t.engineRole("1h")); err != nil {
		return nil, err
	}
	return t, t.Sys().PutPolicy("app", rules)
}

func (t *target) loginConfig() fields {
	own := t.world.Applications[0]
	return fields{
		"tenant_id": t.world.Tenant, "resource": resource,
		"client_id": own.ClientID, "client_secret": own.ClientSecret,
	}
}

func (t *target) engineConfig() fields {
	own := t.world.Applications[0]
	return fields{
		"tenant_id": t.world.Tenant, "subscription_id": t.world.Subscriptions[0],
		"client_id": own.ClientID, "client_secret": own.ClientSecret,
	}
}

func (t *target) engineRole(ttl string) fields {
	return fields{"application_object_id": t.world.Applications[1].ObjectID, "ttl": ttl, "max_ttl": "1h"}
}

func (t *target) write(path string, data fields) error {
	_, err := t.Logical().Write(path, data)
	return err
}

// logIn logs in the cloud's first machine.
func (t *target) logIn(by *vault.Client) (*vault.Secret, error) {
	return t.logInAs(by, "web")
}

func (t *target) logInAs(by *vault.Client, role string) (*vault.Secret, error) {
	machine := t.world.Machines[0]
	var identity struct {
		AccessToken string `json:"access_token"`
	}
	query := url.Values{"api-version": {"2018-02-01"}, "resource": {resource}}
	if err := t.ask("/machines/"+machine.Name+"/metadata/identity/oauth2/token", query, &identity); err != nil {
		return nil, err
	}
	return by.Logical().Write("auth/cloud/login", fields{
		"role": role, "jwt": identity.AccessToken, "subscription_id": machine.Subscription,
		"resource_group_name": machine.ResourceGroup, "vm_name": machine.Name,
	})
}

// issue asks a role for credentials.
func (t *target) issue(path string) (*vault.Secret, error) {
	secret, err := t.Logical().Read(path)
	if err == nil && (secret == nil || secret.LeaseID == "") {
		err = errors.New("no lease")
	}
	return secret, err
}

// engineAt enables and configures an engine with a role "app" as above, and "fresh", which makes principals.
func (t *target) engineAt(path string) error {
	if err := t.Sys().Mount(path, &vault.MountInput{Type: "azure"}); err != nil {
		return err
	}
	if err := t.write(path+"/config", t.engineConfig()); err != nil {
		return err
	}
	if err := t.write(path+"/roles/app", t.engineRole("1h")); err != nil {
		return err
	}
	reader := fmt.Sprintf(`[{"role_name": "Reader", "scope": "/subscriptions/%s"}]`, t.world.Subscriptions[0])
	return t.write(path+"/roles/fresh", fields{"azure_roles": reader, "ttl": "1h"})
}

// alive are the ids of what was made at the cloud and is still there.
func (t *target) alive() (map[string]bool, error) {
	var ledger []struct {
		ID        string
		DeletedAt *float64 `json:"deleted_at"`
	}
	if err := t.ask("/simulator/ledger", nil, &ledger); err != nil {
		return nil, err
	}
	found := map[string]bool{}
	for _, made := range ledger {
		if made.DeletedAt == nil {
			found[made.ID] = true
		}
	}
	return found, nil
}

// leavesNothing fails if anything that the action makes at the cloud is alive when it has ended.
func (t *target) leavesNothing(action func() error) error {
	before, err := t.alive()
	if err != nil {
		return err
	}
	problem := action()
	after, err := t.alive()
	if err != nil {
		return err
	}
	added := 0
	for id := range after {
		if !before[id] {
			added++
		}
	}
	return errors.Join(problem, equal("left behind", added, 0))
}

// slowDeletions makes the cloud answer every DELETE late, until the returned function is called.
func (t *target) slowDeletions() (func(), error) {
	rule := `{"match": {"method": "DELETE"}, "times": null, "action": {"delay": 0.3}}`
	err := t.faults("[" + rule + "]")
	return func() { _ = t.faults("[]") }, err
}

func (t *target) faults(rules string) error {
	response, err := http.Post(t.cloud+"/simulator/faults", "application/json", strings.NewReader(rules))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("the cloud answered %s", response.Status)
	}
	return nil
}

// ask reads JSON from the simulated cloud.
func (t *target) ask(path string, query url.Values, into any) error {
	request, err := http.NewRequest(http.MethodGet, t.cloud+path+"?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	request.Header.Set("Metadata", "true")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the cloud answered %d: %s", response.StatusCode, body)
	}
	return json.Unmarshal(body, into)
}

func equal[T comparable](what string, got, want T) error {
	if got != want {
		return fmt.Errorf("%s: %v instead of %v", what, got, want)
	}
	return nil
}

func contains(what string, got []string, want string) error {
	for _, one := range got {
		if one == want {
			return nil
		}
	}
	return fmt.Errorf("%s: %v lacks %s", what, got, want)
}

// nothing fails unless there is neither a secret nor an error.
func nothing(secret *vault.Secret, err error) error {
	if err != nil {
		return fmt.Errorf("an error instead of nothing: %w", err)
	}
	if secret != nil {
		return fmt.Errorf("%v instead of nothing", secret.Data)
	}
	return nil
}

// refused fails unless the error is an answer with this status.
func refused(err error, status int) error {
	var answer *vault.ResponseError
	if !errors.As(err, &answer) {
		return fmt.Errorf("not refused: %v", err)
	}
	return equal("status", answer.StatusCode, status)
}

// silent fails if an answer carries warnings.
func silent(secret *vault.Secret, err error) error {
	if err != nil {
		return err
	}
	if len(secret.Warnings) > 0 {
		return fmt.Errorf("warnings: %s", strings.Join(secret.Warnings, "; "))
	}
	return nil
}

// number reads an integer as typed clients do.
func number(data fields, name string) (int64, error) {
	value, ok := data[name].(json.Number)
	if !ok {
		return 0, fmt.Errorf("%s is no number but %T %v", name, data[name], data[name])
	}
	return value.Int64()
}

// numbers fails unless the integers of an answer are these.
func numbers(data fields, wanted map[string]int64) error {
	var problems []error
	for name, want := range wanted {
		got, err := number(data, name)
		if err == nil {
			err = equal(name, got, want)
		}
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}
