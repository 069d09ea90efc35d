package terminal

import (
	"net"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
)

// TestAnAddressThatCannotBeListenedOnIsNamedWithItsCure: each reason has a sentence of its own, without the words of
// the system's call, and the flag to change.
func TestAnAddressThatCannotBeListenedOnIsNamedWithItsCure(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	for name, c := range map[string]struct{ address, message, hint string }{
		"in use":           {l.Addr().String(), "is in use", "stop what listens there, or choose another with --listen"},
		"of another":       {"192.0.2.1:9090", "This machine does not have", "--listen one of its own"},
		"no port":          {"127.0.0.1", "missing port in address", "write --listen host:port"},
		"no port there is": {"127.0.0.1:99999", "invalid port", "write --listen host:port"},
	} {
		e := engine.AsError(CheckListen("--listen", c.address))
		named := strings.Contains(e.Message, c.message) && strings.Contains(e.Message, c.address)
		if e.Code != engine.CodeInvalid || !named || !strings.Contains(e.Hint, c.hint) ||
			strings.Contains(e.Message, "listen tcp") || strings.Contains(e.Message, "..") {
			t.Errorf("%s: %q, %q", name, e.Message, e.Hint)
		}
	}
	if err := CheckListen("--listen", "127.0.0.1:0"); err != nil {
		t.Errorf("a free one: %v", err)
	}
}
