package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
)

// lender is a credential of the vendor's SDK: it asks the service for the access token of a role's application.
type lender struct {
	*target
	role   string
	suffix string
}

func (l lender) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	secret, err := l.Logical().Read("cloud/token/" + l.role)
	if err != nil {
		return azcore.AccessToken{}, err
	}
	ends, err := time.Parse(time.RFC3339, secret.Data["expires_at"].(string))
	token := secret.Data["access_token"].(string)
	return azcore.AccessToken{Token: token[:len(token)-len(l.suffix)] + l.suffix, ExpiresOn: ends}, err
}

// The pipeline of every library of the vendor lists subscriptions with it, and is refused with a token that was changed.
func lendToken(t *target) error {
	role := fields{
		"azure_roles":  []fields{{"role_name": "Reader", "scope": "/subscriptions/" + t.world.Subscriptions[0]}},
		"persist_app":  true,
		"token_scopes": t.cloud + "/arm/.default",
	}
	if err := t.write("cloud/roles/lent", role); err != nil {
		return err
	}
	for suffix, want := range map[string]int{"": http.StatusOK, "AAAAAAAA": http.StatusUnauthorized} {
		if got, err := t.listSubscriptions(lender{t, "lent", suffix}); err != nil || got != want {
			return fmt.Errorf("answered %d, not %d: %v", got, want, err)
		}
	}
	return nil
}

func (t *target) listSubscriptions(credential azcore.TokenCredential) (int, error) {
	// The simulated cloud of these checks is served without TLS.
	options := &policy.BearerTokenOptions{InsecureAllowCredentialWithHTTP: true}
	bearer := runtime.NewBearerTokenPolicy(credential, []string{t.cloud + "/arm/.default"}, options)
	pipeline := runtime.NewPipeline("clients", "v1", runtime.PipelineOptions{PerRetry: []policy.Policy{bearer}}, nil)
	url := t.cloud + "/arm/subscriptions?api-version=2022-12-01"
	request, err := runtime.NewRequest(context.Background(), http.MethodGet, url)
	if err != nil {
		return 0, err
	}
	response, err := pipeline.Do(request)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}
