package server_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/server"
)

// TestACrowdOfStrangersShutsNobodyOut opens more connections than there is room for.
func TestACrowdOfStrangersShutsNobodyOut(t *testing.T) {
	t.Parallel()
	const room = 40
	b := start(t, func(o *server.Options) { o.MaxConnections = room })
	watching := b.watch("/ws/runs/" + b.liveRun())
	b.do("GET", "/api/info", nil).want(t, 200) // on a connection that is kept
	for name, first := range map[string]string{
		"half open":    "",
		"slow headers": "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
		"slow sign-in": "POST /api/auth/signin HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" +
			"Content-Length: 4000\r\n\r\n{",
		"idle": "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"refused": "GET /ws/runs/x HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: " +
			"websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			var crowd []net.Conn
			for range 5 * room {
				conn, err := net.Dial("tcp", strings.TrimPrefix(b.base, "http://"))
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = conn.Close() }()
				_, _ = io.WriteString(conn, first)
				crowd = append(crowd, conn)
			}
			fresh := *b.client
			fresh.Transport = nil
			res, err := fresh.Get(b.base + "/healthz")
			if err != nil || res.StatusCode != http.StatusOK {
				t.Fatalf("a probe: %v", err)
			}
			_ = res.Body.Close()
			fresh.CloseIdleConnections()
			b.do("GET", "/api/info", nil).want(t, 200)
			// The oldest have been closed: nothing else ends them so soon.
			for i, conn := range crowd[:3*room] {
				_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
				if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
					t.Fatalf("connection %d of %d is still open", i, len(crowd))
				}
			}
		})
	}
	_ = watching.SetReadDeadline(time.Now().Add(5 * time.Second))
	if _, _, err := watching.ReadMessage(); err != nil {
		t.Errorf("the socket of a caller who is known: %v", err)
	}
	// Everybody who is there is known: a new one has to wait for one of them.
	var known []net.Conn
	for range room {
		conn, err := net.Dial("tcp", strings.TrimPrefix(b.base, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		_, _ = fmt.Fprintf(conn, "GET /api/info HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", b.token)
		_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
		if _, err := conn.Read(make([]byte, 1)); err == nil {
			known = append(known, conn)
		}
	}
	if len(known) > room {
		t.Errorf("%d connections, and room for %d", len(known), room)
	}
	for _, conn := range known {
		_ = conn.Close()
	}
	for range 100 {
		if res, err := b.client.Get(b.base + "/healthz"); err == nil {
			_ = res.Body.Close()
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Error("no room again after they have gone")
}
