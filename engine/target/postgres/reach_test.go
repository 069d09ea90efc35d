package postgres_test

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/reach"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/postgres"
)

// TestOnlyWhatMayBeReached: by the address that a name has led to, and by the name; nobody else hears a byte.
func TestOnlyWhatMayBeReached(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	heard := make(chan struct{}, 100)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			heard <- struct{}{}
			_ = c.Close()
		}
	}()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	for _, c := range []struct {
		list    []string
		host    string
		reached bool
	}{
		{nil, "127.0.0.1", true}, {[]string{"10.0.0.0/8"}, "127.0.0.1", false}, {[]string{"10.0.0.0/8"}, "localhost", false},
		{[]string{"127.0.0.0/8"}, "localhost", true}, {[]string{"localhost:" + port}, "localhost", true},
		{[]string{"localhost:1"}, "localhost", false}, {nil, "169.254.169.254", false}, {nil, "[::ffff:169.254.1.1]", false},
	} {
		p, err := reach.Parse(c.list)
		if err != nil {
			t.Fatal(err)
		}
		db, err := postgres.NewStrictDriver(postgres.Strict{}, p).Open(target.Config{ConnectTimeout: 3 * time.Second,
			DSN: "postgres://u:p@" + c.host + ":" + port + "/d?sslmode=disable"})
		if err != nil {
			t.Fatal(err)
		}
		_, err = db.Check(t.Context())
		refused := err != nil && (strings.Contains(err.Error(), "not among the addresses") ||
			strings.Contains(err.Error(), "of the link"))
		if !engine.HasCode(err, engine.CodeTarget) || refused == c.reached || (len(heard) > 0) != c.reached {
			t.Errorf("%v %s: %v, heard %d", c.list, c.host, err, len(heard))
		}
		for len(heard) > 0 {
			<-heard
		}
		_ = db.Close()
	}
}
