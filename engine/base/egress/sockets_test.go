package egress_test

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/egress"
)

func socket(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
}

// TestSocketsAreListed: a socket is dialled where the file that its path leads to is listed, or is in a listed folder.
func TestSocketsAreListed(t *testing.T) {
	dir, err := os.MkdirTemp("", "egress") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	const name = "/.s.PGSQL.5432"
	own, other := dir+"/own"+name, dir+"/other"+name
	socket(t, own)
	socket(t, other)
	socket(t, dir+"/own/below"+name)
	for link, to := range map[string]string{"to-own": "own", "own/away": "../other", "own/.s.PGSQL.1": "../other" + name,
		"other/.s.PGSQL.2": "../own" + name} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		list    []string
		path    string
		allowed bool
	}{
		{nil, own, false}, {[]string{"0.0.0.0/0", "::/0"}, own, false},
		{[]string{"unix:" + dir + "/own"}, own, true}, {[]string{"unix:" + dir + "/own/"}, own, true},
		{[]string{"10.0.0.0/8", " unix:" + own}, own, true},
		{[]string{"unix:" + own}, dir + "/own/below" + name, false},
		{[]string{"unix:" + dir + "/own"}, dir + "/own/below" + name, true},
		{[]string{"unix:/"}, own, true},
		{[]string{"unix:" + dir + "/own"}, other, false},
		{[]string{"unix:" + dir + "/ow"}, own, false},
		{[]string{"unix:" + dir + "/own"}, dir + "/own/../other" + name, false},
		{[]string{"unix:" + dir + "/own"}, dir + "/other/../own" + name, true},
		{[]string{"unix:" + dir + "/own"}, dir + "/own/away" + name, false},
		{[]string{"unix:" + dir + "/own"}, dir + "/own/.s.PGSQL.1", false},
		{[]string{"unix:" + dir + "/own"}, dir + "/other/.s.PGSQL.2", true},
		{[]string{"unix:" + dir + "/own"}, dir + "/to-own" + name, true},
		{[]string{"unix:" + dir + "/to-own"}, own, true},
		{[]string{"unix:" + dir + "/own"}, "/proc/self/root" + other, false},
		{[]string{"unix:/"}, "@abstract", false}, {[]string{"unix:/"}, "\x00abstract", false},
		{[]string{"unix:/"}, "own" + name, false},
	} {
		conn, err := policy(t, c.list...).Dial(t.Context(), "unix", c.path)
		if err == nil {
			_ = conn.Close()
		}
		if c.allowed != (err == nil) || !c.allowed && (!errors.Is(err, egress.ErrRefused) ||
			!engine.HasCode(err, engine.CodeTarget)) {
			t.Errorf("%v %q: %v", c.list, c.path, err)
		}
	}
	// Who starts the process names what it likes.
	conn, err := egress.Unrestricted().Dial(t.Context(), "unix", own)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	// Sockets and addresses are two lists: one of sockets alone leaves TCP as it is without a list.
	for address, allowed := range map[string]bool{"127.0.0.1:1": true, "10.0.0.7:5432": true, "169.254.169.254:80": false} {
		at := netip.MustParseAddrPort(address)
		if err := policy(t, "unix:/").Check("", at); errors.Is(err, egress.ErrRefused) == allowed {
			t.Errorf("%s beside a list of sockets: %v", address, err)
		}
		if err := policy(t, "unix:/", "192.0.2.0/24").Check("", at); !errors.Is(err, egress.ErrRefused) {
			t.Errorf("%s beside a list of both: %v", address, err)
		}
	}
	if _, err := policy(t, "127.0.0.1").CheckSocket(own); !errors.Is(err, egress.ErrRefused) {
		t.Errorf("a socket beside a list of addresses: %v", err)
	}
	for _, network := range []string{"udp", "unixgram", "ip", "unixpacket"} {
		if _, err := policy(t).Dial(t.Context(), network, "127.0.0.1:1"); !errors.Is(err, egress.ErrRefused) {
			t.Errorf("%s: %v", network, err)
		}
	}
	for _, text := range []string{"unix:", "unix:run", "unix:@a", "unix://run", "UNIX:/run"} {
		if _, err := egress.Parse([]string{text}); text != "unix://run" && err == nil {
			t.Errorf("%q is a list", text)
		}
	}
}
