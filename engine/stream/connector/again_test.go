package connector

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
)

// read reads until so many rows have come, or the error, for a minute at most.
func read(t *testing.T, s Source, n int) (texts []string, err error) {
	t.Helper()
	b := &column.Batch{}
	for begin := time.Now(); len(texts) < n; {
		if err := s.Read(b); err != nil {
			return texts, err
		}
		for i := range b.N {
			texts = append(texts, string(b.Cols[1].Text(i)))
		}
		if time.Since(begin) > time.Minute {
			t.Fatalf("%q came, and nothing more", texts)
		}
	}
	return texts, nil
}

// comingPeer is where a source connects to: a listener that may be another one, or none.
type comingPeer struct {
	mu sync.Mutex
	l  net.Listener
}

// listen has somebody listen, who says one thing after the other, each on a connection of its own; nobody does behind
// the last.
func (p *comingPeer) listen(t *testing.T, say ...func(net.Conn)) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	p.l = l
	p.mu.Unlock()
	go func() {
		for i, one := range say {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if i == len(say)-1 {
				p.mu.Lock()
				p.l = nil
				p.mu.Unlock()
				_ = l.Close()
			}
			one(c)
			_ = c.Close()
		}
	}()
}

// dial is a Dial to who listens.
func (p *comingPeer) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	p.mu.Lock()
	l := p.l
	p.mu.Unlock()
	if l == nil {
		return nil, errors.New("connection refused")
	}
	return (&net.Dialer{}).DialContext(ctx, network, l.Addr().String())
}

func (p *comingPeer) open(t *testing.T, reconnect bool) Source {
	t.Helper()
	config := csv("")
	config["SOURCE.SOCKET_HOST"], config["SOURCE.SOCKET_PORT"] = "peer", int64(5000)
	config["SOURCE.RECONNECT"], config["PARSER.HEADER"] = reconnect, true
	s, err := Open(t.Context(), TCP, config, two, nil, p.dial)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func write(text string) func(net.Conn) {
	return func(c net.Conn) { _, _ = io.WriteString(c, "id,t\n"+text) }
}

// TestAPeerIsConnectedToAgain: after the end of a connection and after a reset, both within a row, and after a while in
// which nobody listens; each connection has its header, and what is waited for is told meanwhile.
func TestAPeerIsConnectedToAgain(t *testing.T) {
	t.Parallel()
	p, wasRead, over := &comingPeer{}, make(chan struct{}), make(chan struct{})
	defer close(over)
	p.listen(t, write("1,a\n7,123"), func(c net.Conn) {
		write("7,12345\n3,c\n4,")(c)
		<-wasRead
		_ = c.(*net.TCPConn).SetLinger(0)
	})
	s := p.open(t, true)
	if got, err := read(t, s, 3); err != nil || strings.Join(got, " ") != "a 12345 c" || s.Malformed() != 1 {
		t.Fatalf("%q, %d malformed, %v", got, s.Malformed(), err)
	}
	close(wasRead)
	b := &column.Batch{}
	for begin := time.Now(); !strings.Contains(s.(Waiting).Waiting(), "connecting to peer:5000"); {
		if err := s.Read(b); err != nil || b.N > 0 || time.Since(begin) > time.Minute {
			t.Fatalf("it waits for %q, %d rows, %v", s.(Waiting).Waiting(), b.N, err)
		}
	}
	p.listen(t, write("5,e\n"), func(net.Conn) { <-over })
	if got, err := read(t, s, 1); err != nil || got[0] != "e" || s.Malformed() != 2 {
		t.Errorf("%q, %d malformed, %v", got, s.Malformed(), err)
	}
	ended := make(chan error)
	go func() { _, err := read(t, s, 1); ended <- err }()
	time.Sleep(20 * time.Millisecond)
	if err := s.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	if err := <-ended; err == nil {
		t.Error("after Close it read to the end")
	}
}

// TestAnEndIsTheEndOfTheLastRow of a source that ends with its connection: nobody sends the row again.
func TestAnEndIsTheEndOfTheLastRow(t *testing.T) {
	t.Parallel()
	p := &comingPeer{}
	p.listen(t, write("1,a\n2,b"))
	s := p.open(t, false)
	defer func() { _ = s.Close() }()
	if got, err := read(t, s, 3); !errors.Is(err, io.EOF) || strings.Join(got, "") != "ab" || s.Malformed() != 0 {
		t.Errorf("%q, %d malformed, %v", got, s.Malformed(), err)
	}
}

// TestAFileIsFollowed: lines come as they are whole, and none is lost that was written before the file became another
// one, which is told.
func TestAFileIsFollowed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		then func(path string) error
		want string
	}{
		"truncated": {func(path string) error { return os.Truncate(path, 3) }, "was truncated while it was followed: it has 3 bytes"},
		"replaced": {func(path string) error {
			return errors.Join(os.Rename(path, path+".1"), os.WriteFile(path, []byte("9,z\n"), 0o600))
		}, "another file was put in the place of \"a.csv\""},
		"renamed": {func(path string) error { return os.Rename(path, path+".1") }, "was removed, or renamed"},
		"removed": {os.Remove, "was removed, or renamed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, "a.csv")
			folder, err := OpenFolder(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = folder.Close() }()
			f, err := os.Create(path)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = f.Close() }()
			write := func(text string) {
				t.Helper()
				if _, err := f.WriteString(text); err != nil {
					t.Fatal(err)
				}
			}
			config := csv("a.csv")
			config["SOURCE.FOLLOW"] = true
			write("1,a\n2,b")
			s, err := Open(t.Context(), File, config, two, folder, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = s.Close() }()
			if got, err := read(t, s, 1); err != nil || got[0] != "a" {
				t.Fatalf("%q, %v", got, err)
			}
			write("b\n3,c\n")
			if got, err := read(t, s, 2); err != nil || strings.Join(got, " ") != "bb c" {
				t.Fatalf("%q, %v", got, err)
			}
			if name == "replaced" || name == "renamed" {
				write("4,d\n")
			}
			if err := c.then(path); err != nil {
				t.Fatal(err)
			}
			got, err := read(t, s, 9)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "DROP the query") {
				t.Errorf("%v", err)
			}
			if (name == "replaced" || name == "renamed") != (strings.Join(got, "") == "d") {
				t.Errorf("%q came before", got)
			}
		})
	}
}
