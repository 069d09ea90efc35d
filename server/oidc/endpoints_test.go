package oidc

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/egress"
	"github.com/loadstone-db/loadstone/engine/base/egress/egresstest"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/store"
)

func options(issuer string) Options {
	return Options{
		Issuer:       issuer,
		ClientID:     "loadstone",
		ClientSecret: secret.New("shared"),
		DefaultRole:  store.RoleViewer,
	}
}

// TestAProviderThatLeadsToTheLink: by its name, or by an address that it names.
func TestAProviderThatLeadsToTheLink(t *testing.T) {
	for _, issuer := range []string{"https://169.254.169.254", "https://metadata.google.internal", "https://[fe80::1]"} {
		if err := options(issuer).Check(); !engine.HasCode(err, engine.CodeInvalid) ||
			!strings.Contains(err.Error(), "connections to it are refused") {
			t.Errorf("%s: %v", issuer, err)
		}
	}
	egresstest.StubDNS(t, egresstest.Metadata)
	_, _, err := newClient(options("https://login.example")).begin(t.Context(), "", "")
	if !errors.Is(err, egress.ErrRefused) || !engine.HasCode(err, engine.CodeUnavailable) {
		t.Errorf("a name: %v", err)
	}
}

// provider is one on loopback with the given claims about itself, and what else it does.
func provider(t *testing.T, says map[string]string, other http.HandlerFunc) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	p := httptest.NewServer(mux)
	t.Cleanup(p.Close)
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		all := map[string]string{"issuer": p.URL, "authorization_endpoint": p.URL + "/auth",
			"token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys"}
		for k, v := range says {
			all[k] = v
		}
		_ = json.NewEncoder(w).Encode(all)
	})
	mux.HandleFunc("/", other)
	return p
}

// TestAddressesOfAProviderWhereSomebodyMayBeBetween are refused before anything secret goes there.
func TestAddressesOfAProviderWhereSomebodyMayBeBetween(t *testing.T) {
	for _, name := range []string{"authorization_endpoint", "token_endpoint", "jwks_uri", "userinfo_endpoint"} {
		for _, at := range []string{"http://login.example/x", "ftp://127.0.0.1/x", "file:///etc/passwd"} {
			p := provider(t, map[string]string{name: at}, http.NotFound)
			_, _, err := newClient(options(p.URL)).begin(t.Context(), "", "")
			if !engine.HasCode(err, engine.CodeUnavailable) || !strings.Contains(errors.Unwrap(err).Error(), at) {
				t.Errorf("%s %s: %v", name, at, err)
			}
		}
	}
	p := provider(t, nil, http.NotFound)
	if _, _, err := newClient(options(p.URL)).begin(t.Context(), "", ""); err != nil {
		t.Errorf("what is good: %v", err)
	}
}

// TestNothingSecretIsSentWhereAProviderLeads: the code and the client's secret go to the provider alone.
func TestNothingSecretIsSentWhereAProviderLeads(t *testing.T) {
	var message atomic.Int32
	remote := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { message.Add(1) }))
	defer remote.Close()
	p := provider(t, nil, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, remote.URL, http.StatusTemporaryRedirect)
	})
	c := newClient(options(p.URL))
	_, cookie, err := c.begin(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	f, err := c.seal.open(strings.TrimPrefix(cookie, cookieName+"="))
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = c.finish(context.Background(), "", cookie, callbackParams{Code: "c", State: f.State})
	if !engine.HasCode(err, engine.CodeUnauthorized) || message.Load() != 0 {
		t.Errorf("%v, and somebody else was told %d times", err, message.Load())
	}
	// What is read may be elsewhere, where nobody is between.
	for to, followed := range map[string]bool{remote.URL: true, "http://login.example": false,
		"ftp://127.0.0.1": false} {
		first := httptest.NewRequest(http.MethodGet, p.URL, nil)
		next := httptest.NewRequest(http.MethodGet, to, nil)
		if err := checkRedirect(next, []*http.Request{first}); (err == nil) != followed {
			t.Errorf("%s: %v", to, err)
		}
	}
}
