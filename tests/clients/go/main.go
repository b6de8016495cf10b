// The program runs checks against a server of ours with the peer's own client library. It prints a line of JSON for
// each: {"check", "ok", "detail"}. Usage: clients URL ROOT_TOKEN CLOUD_URL, the last being that of the simulated cloud.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	vault "github.com/hashicorp/vault/api"
)

// Every check is independent of the others. The tests in Python read the names from this table.
var checks = []struct {
	name string
	run  func(*target) error
}{
	{"reading an absent role gives nothing", readAbsentRole},
	{"listing roles where there are none gives nothing", listAbsentRoles},
	{"deleting an absent login role is no error", deleteAbsentLoginRole},
	{"credentials of an absent role are refused with a reason", issueOfAbsentRole},
	{"deleting an absent engine role is a 404", deleteAbsentEngineRole},
	{"reading an absent policy gives nothing", readAbsentPolicy},
	{"reading an absent token role gives nothing", readAbsentTokenRole},
	{"reading an absent login configuration gives nothing", readAbsentLoginConfig},
	{"an absent engine configuration reads as empty", readAbsentEngineConfig},
	{"an authentication method is enabled, listed and disabled", enableAuth},
	{"an authentication method is read as a mount", readAuth},
	{"an authentication method is tuned as a mount", tuneAuth},
	{"a secrets engine is enabled, read, listed and disabled", enableEngine},
	{"a secrets engine is tuned", tuneEngine},
	{"tuning one thing of a mount keeps its lifetimes", tuneOneThing},
	{"all that a mount can be tuned with reads back", tuneEverything},
	{"a mount is moved", moveMount},
	{"a mount is disabled and enabled in one breath", enableAgain},
	{"a policy is written, read, listed and deleted", writePolicy},
	{"a policy's name may have a slash or an at sign", nameOfPolicy},
	{"a token is created without a warning", createToken},
	{"a token is looked up", lookUpToken},
	{"a token is renewed", renewToken},
	{"a token is revoked", revokeToken},
	{"a token is handled by its accessor", handleAccessor},
	{"an unknown accessor is a bad request", unknownAccessor},
	{"a list is read page by page to its end", readPages},
	{"a token is created from a role without a warning", createFromRole},
	{"a token without the default policy has none", withoutDefaultPolicy},
	{"a lease is looked up", lookUpLease},
	{"a lease is renewed", renewLease},
	{"nothing is left of a revoked lease", revokeLease},
	{"nothing is left of a revoked prefix", revokePrefix},
	{"a configuration can be deleted after a revocation", deleteConfigAfterRevocation},
	{"the login configuration reads back typed", loginConfig},
	{"the login configuration of the peer's type reads back typed", loginConfigOfPeer},
	{"the login configuration can be written as it was read", loginConfigAgain},
	{"the engine configuration reads back typed", engineConfig},
	{"the type of an engine's answers is that of its mount", mountType},
	{"a watcher renews a login token", watchToken},
	{"a watcher renews a lease", watchLease},
	{"wrapped credentials are unwrapped once", wrapCredentials},
	{"a wrapped token is unwrapped once", wrapToken},
	{"a wrapped login is unwrapped once", wrapLogin},
	{"a wrapping token unwraps with itself", unwrapWithItself},
	{"a wrapping token is looked up and replaced", lookUpWrapping},
	{"an audit device is enabled, listed and disabled", enableAudit},
	{"a text is hashed as an audit device does", hashForAudit},
	{"a request header is put into audit entries", auditHeader},
	{"a rate limit is written, read, listed and deleted", limitRate},
	{"a request over a rate limit is a 429", exceedRate},
	{"answers tell what a rate limit leaves", tellRate},
	{"a lease count is written, read, listed and deleted", limitLeases},
	{"a lease over a lease count is a 429", exceedLeases},
	{"the encryption key is rotated", rotateKey},
	{"help is answered and nothing is made", help},
	{"the health is read", health},
	{"the seal status is read", sealStatus},
	{"the leader is read", leader},
	{"capabilities are read", capabilities},
	{"another service verifies a machine's token", verifyToken},
	{"the vendor's SDK works with the token of a role", lendToken},
}

func main() {
	t, err := prepare(os.Args[1], os.Args[2], os.Args[3])
	if err != nil {
		fmt.Fprintln(os.Stderr, "cannot prepare the server:", err)
		os.Exit(1)
	}
	out := json.NewEncoder(os.Stdout)
	for _, check := range checks {
		err := attempt(check.run, t)
		line := map[string]any{"check": check.name, "ok": err == nil, "detail": ""}
		if err != nil {
			line["detail"] = err.Error()
		}
		if err := out.Encode(line); err != nil {
			panic(err)
		}
	}
}

// attempt runs a check; a panic fails it alone.
func attempt(run func(*target) error, t *target) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("panic: %v", reason)
		}
	}()
	return run(t)
}

// client makes a client as its library does by default, but for the retries.
func client(url, token string) (*vault.Client, error) {
	config := vault.DefaultConfig()
	config.Address = url
	config.MaxRetries = 0
	made, err := vault.NewClient(config)
	if err != nil {
		return nil, err
	}
	made.ClearNamespace()
	made.SetToken(token)
	return made, nil
}
