package postgres

import (
	"context"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/target"
)

// TestEachAddressOfAHostHasItsTime: a name whose first two addresses do not answer is connected to at the third, though
// each of those has used up connect_timeout.
func TestEachAddressOfAHostHasItsTime(t *testing.T) {
	t.Parallel()
	opened, err := NewDriver().Open(target.Config{DSN: secret.New("postgres://u@db.example/x?sslmode=disable"),
		ConnectTimeout: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	d := opened.(*database)
	defer d.Close()
	var addresses []string
	var last net.Listener
	for range 3 {
		if last, err = (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
		defer last.Close()
		addresses = append(addresses, last.Addr().String())
	}
	reached := make(chan struct{})
	go func() {
		if c, err := last.Accept(); err == nil {
			_ = c.Close()
			close(reached)
		}
	}()
	d.conn.LookupFunc = func(context.Context, string) ([]string, error) { return addresses, nil }
	if c, err := d.dial(t.Context()); err == nil {
		closeQuietly(c)
		t.Fatal("nobody speaks Postgres there")
	}
	select {
	case <-reached:
	case <-time.After(10 * time.Second):
		t.Error("the third address was not tried")
	}
	if limit := d.CheckLimit(); limit < 3*200*time.Millisecond {
		t.Errorf("a check ends after %v", limit)
	}
}

// TestANameOfManyAddressesHasAnEnd: of fifty that do not answer no more are tried than have their time within the limit
// of all of them.
func TestANameOfManyAddressesHasAnEnd(t *testing.T) {
	t.Parallel()
	const each = 20 * time.Millisecond
	opened, err := NewDriver().Open(target.Config{DSN: secret.New("postgres://u@db.example/x?sslmode=disable"),
		ConnectTimeout: each})
	if err != nil {
		t.Fatal(err)
	}
	d := opened.(*database)
	defer d.Close()
	// They accept, and say nothing: an attempt lasts as long as it may. One address after itself would have no time anew.
	var two []string
	for range 2 {
		silent, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer silent.Close()
		two = append(two, silent.Addr().String())
	}
	addresses := slices.Repeat(two, 25)
	d.conn.LookupFunc = func(context.Context, string) ([]string, error) { return addresses, nil }
	var tried atomic.Int32
	dial := d.conn.DialFunc
	d.conn.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if ctx.Err() == nil {
			tried.Add(1)
		}
		return dial(ctx, network, address)
	}
	if c, err := d.dial(t.Context()); err == nil {
		closeQuietly(c)
		t.Fatal("nobody speaks Postgres there")
	} else if !strings.Contains(err.Error(), "did not answer within") {
		t.Error(err)
	}
	if n := time.Duration(tried.Load()); n > d.dialLimit()/each+1 {
		t.Errorf("%d addresses were tried in %v", n, d.dialLimit())
	}
}
