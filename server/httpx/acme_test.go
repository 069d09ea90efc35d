package httpx_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/egress"
	"github.com/loadstone-db/loadstone/engine/base/egress/egresstest"
	"github.com/loadstone-db/loadstone/server/httpx"
)

// TestADirectoryThatLeadsToTheLink is asked for nothing.
func TestADirectoryThatLeadsToTheLink(t *testing.T) {
	open := func(at string) error {
		m, err := httpx.OpenACME(httpx.ACME{Directory: at, Domains: []string{"bench.example"}, Dir: t.TempDir()})
		if err == nil {
			_, err = m.Client.Discover(t.Context())
		}
		return err
	}
	if err := open("https://169.254.169.254/dir"); !engine.HasCode(err, engine.CodeInvalid) ||
		!strings.Contains(err.Error(), "--tls-acme-directory") {
		t.Errorf("an address: %v", err)
	}
	egresstest.StubDNS(t, egresstest.Metadata)
	if err := open("https://acme.example/dir"); !errors.Is(err, egress.ErrRefused) {
		t.Errorf("a name: %v", err)
	}
}
