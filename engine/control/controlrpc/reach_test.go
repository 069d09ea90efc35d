package controlrpc

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/loadstone-db/loadstone/engine/reach/reachtest"
)

// TestANodeThatLeadsToTheLink: an address that a node announced, or that a name leads to, is judged when it is dialled.
func TestANodeThatLeadsToTheLink(t *testing.T) {
	reachtest.Lead(t, reachtest.Metadata)
	for _, address := range []string{"node.example:7000", "169.254.169.254:80"} {
		d, err := NewDialer(DialOptions{Address: address, Security: Security{Plain: true}})
		if err != nil {
			t.Fatal(err)
		}
		err = d.conn.Invoke(t.Context(), "/any/method", &emptypb.Empty{}, &emptypb.Empty{})
		if err == nil || !strings.Contains(err.Error(), "nobody is spoken with there") {
			t.Errorf("%s: %v", address, err)
		}
		res, err := d.http.Get("http://" + address)
		if err == nil {
			_ = res.Body.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "nobody is spoken with there") {
			t.Errorf("parts of %s: %v", address, err)
		}
		_ = d.Close()
	}
}
