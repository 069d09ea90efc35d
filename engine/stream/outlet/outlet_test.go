package outlet

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine/reach"
	"github.com/loadstone-db/loadstone/engine/stream/column"
	"github.com/loadstone-db/loadstone/engine/stream/feed"
)

// TestAFailureKeepsTheAddressToItself: readers of a query see why rows could not be posted, and to which host, but not
// what is behind it.
func TestAFailureKeepsTheAddressToItself(t *testing.T) {
	was := between
	between = time.Microsecond
	t.Cleanup(func() { between = was })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	host := listener.Addr().String()
	_ = listener.Close()
	for name, allowed := range map[string][]string{"nobody listens": {"127.0.0.1"}, "refused": {"192.0.2.1"}} {
		t.Run(name, func(t *testing.T) {
			policy, err := reach.Parse(allowed)
			if err != nil {
				t.Fatal(err)
			}
			columns := []column.Column{}
			sink, err := Webhook(t.Context(), feed.Config{"SINK.URL": "http://" + host + "/services/canary?token=canary"},
				columns, policy, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = sink.Close() }()
			err = sink.Write(&column.Batch{})
			if err == nil || strings.Contains(err.Error(), "canary") || !strings.Contains(err.Error(), host) {
				t.Errorf("it failed with %v", err)
			}
		})
	}
	if _, err := Webhook(t.Context(), feed.Config{"SINK.URL": ""}, nil, nil, nil); !errors.Is(err, ErrSealed) {
		t.Errorf("without its address it gave %v", err)
	}
}
