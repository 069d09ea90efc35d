package delivery

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/loadstone-db/loadstone/engine/base/egress"
	"github.com/loadstone-db/loadstone/engine/base/secret"
)

// TestANameThatLeadsToARefusedAddress: what a name has led to is judged when it is dialled, by the list too.
func TestANameThatLeadsToARefusedAddress(t *testing.T) {
	called := false
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called = true }))
	defer s.Close()
	list, err := egress.Parse([]string{"10.0.0.0/8"})
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewClient(Endpoint{URL: secret.New(s.URL), Egress: list})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Post(t.Context(), "", "text/plain", nil); !errors.Is(err, egress.ErrRefused) || called {
		t.Errorf("%v, called: %v", err, called)
	}
	// The dialler that the client has, whatever a name resolves to.
	if c, err = NewClient(Endpoint{URL: secret.New("http://a.example/")}); err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	transport, _ := c.http.Transport.(*http.Transport)
	if _, err := transport.DialContext(t.Context(), "tcp", "169.254.169.254:1"); !errors.Is(err, egress.ErrRefused) {
		t.Error(err)
	}
}
