package users

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadstone-db/loadstone/server/auth"
)

func TestNetwork(t *testing.T) {
	for ip, want := range map[string]string{"203.0.113.7": "203.0.113.7", "2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64",
		"2001:db8:1:2::1": "2001:db8:1:2::/64", "::ffff:203.0.113.7": "::ffff:203.0.113.7", "fe80::1%eth0": "fe80::/64",
		"": "", "nonsense": "nonsense"} {
		if got := auth.Network(ip); got != want {
			t.Errorf("%q is of %q, want %q", ip, got, want)
		}
	}
}

// TestStrangersDoNotLockOut guesses one user's password from many addresses: further guesses wait, and so does the user
// from an address that it never came from; from one that it did it does not.
func TestStrangersDoNotLockOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &handlers{addresses: auth.NewLimiter(10, 6*time.Second), accounts: auth.NewLimiter(20, 15*time.Second)}
		h.known.add("ada", "home")
		for i := range 20 {
			if err := h.patience("stranger", h.known.account("ada", "stranger")); i < 20 && err != nil {
				t.Fatalf("guess %d: %v", i, err)
			}
			h.accounts.Failed(h.known.account("ada", "stranger"))
		}
		if h.patience("elsewhere", h.known.account("ada", "elsewhere")) == nil {
			t.Error("a guess after 20 from elsewhere is heard at once")
		}
		if err := h.patience("home", h.known.account("ada", "home")); err != nil {
			t.Errorf("the user at home: %v", err)
		}
		if err := h.patience("elsewhere", h.known.account("eve", "elsewhere")); err != nil {
			t.Errorf("another user: %v", err)
		}
		time.Sleep(16 * time.Second)
		if err := h.patience("elsewhere", h.known.account("ada", "elsewhere")); err != nil {
			t.Errorf("16 s later: %v", err)
		}
	})
}

func TestKnownIsBounded(t *testing.T) {
	var k known
	for i := range mostKnown + 5 {
		k.add("ada", time.Duration(i).String())
	}
	if len(k.pairs) > mostKnown {
		t.Errorf("%d pairs are kept", len(k.pairs))
	}
}
