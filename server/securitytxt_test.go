package server_test

import (
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/server"
)

// TestSecurityText: strangers read whom to tell of a weakness, where the operator has named somebody.
func TestSecurityText(t *testing.T) {
	t.Parallel()
	const path = "/.well-known/security.txt"
	b := start(t, func(o *server.Options) {
		o.SecurityContact, o.PublicURL = "mailto:security@example.com", "https://load.example/"
		o.Hosts = hosts(t, "load.example")
	})
	text := string(b.do("GET", path, nil, "Authorization", "").want(t, 200).body)
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		fields[name] = value
	}
	if fields["Contact"] != "mailto:security@example.com" || fields["Canonical"] != "https://load.example"+path {
		t.Errorf("%q", text)
	}
	ends, err := time.Parse(time.RFC3339, fields["Expires"])
	if left := time.Until(ends); err != nil || left < 363*24*time.Hour || left > 366*24*time.Hour {
		t.Errorf("Expires: %v %v", ends, err)
	}
	if got := start(t).do("GET", path, nil, "Authorization", ""); strings.Contains(string(got.body), "Contact:") {
		t.Errorf("without a contact: %s", got.body)
	}
}
