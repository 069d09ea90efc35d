package deliver

import (
	"errors"
	"testing"
)

// TestANameThatLeadsToARefusedAddress: what a name has led to is judged when it is dialled.
func TestANameThatLeadsToARefusedAddress(t *testing.T) {
	for address, want := range map[string]bool{"169.254.169.254:80": false, "[fe80::1%lo]:80": false,
		"[::ffff:169.254.169.254]:80": false, "[fd00:ec2::254]:80": false, "100.100.100.200:443": false,
		"224.0.0.1:80": false, "0.0.0.0:80": false, "[::]:80": false, "127.0.0.1:80": true, "10.1.2.3:80": true,
		"[fd00::1]:80": true, "8.8.8.8:443": true} {
		if err := judge(t.Context(), "tcp", address, nil); errors.Is(err, errRefused) == want {
			t.Errorf("%s: %v", address, err)
		}
	}
	c, err := NewClient(Endpoint{URL: "http://a.example/"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	// The dialler that the client has, whatever a name resolves to.
	if _, err := c.dialer.DialContext(t.Context(), "tcp", "169.254.169.254:1"); !errors.Is(err, errRefused) {
		t.Error(err)
	}
}
