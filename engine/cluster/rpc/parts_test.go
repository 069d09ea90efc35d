package rpc

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadstone-db/loadstone/engine/cluster/protocoltest"
)

// TestANodeThatFallsSilentIsNotWaitedFor: in the middle of a part, on a connection that stands.
func TestANodeThatFallsSilentIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	p := protocoltest.Announcement(bytes.Repeat([]byte("x"), 1<<20))
	silent := make(chan struct{})
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.FormatInt(p.Artifact.SizeBytes, 10))
		_, _ = w.Write(make([]byte, 1000))
		w.(http.Flusher).Flush()
		<-silent
	}))
	defer node.Close()
	defer close(silent)
	d, err := NewDialer(DialOptions{Address: node.Listener.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	d.idle = 50 * time.Millisecond
	r, err := (&serverEnd{dialer: d}).OpenPart(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if n, err := io.Copy(io.Discard, r); n != 1000 || !errors.Is(err, errSilent) {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// slow gives a byte after each pause, and then nothing.
type slow struct {
	ctx    context.Context
	pauses []time.Duration
}

func (s *slow) Read(p []byte) (int, error) {
	pause := time.Hour
	if len(s.pauses) > 0 {
		pause, s.pauses = s.pauses[0], s.pauses[1:]
	}
	select {
	case <-time.After(pause):
		return copy(p, "x"), nil
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	}
}

func (s *slow) Close() error { return nil }

// TestASlowNodeIsWaitedFor: for as long as bytes come and the part is not overdue for its size; and
// silence counts from the beginning.
func TestASlowNodeIsWaitedFor(t *testing.T) {
	t.Parallel()
	for name, pauses := range map[string][]time.Duration{
		"slow, then silent": {20 * time.Second, 29 * time.Second, 29 * time.Second, 29 * time.Second},
		"silent at once":    nil,
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			b := newBody(ctx, cancel, &slow{ctx, pauses}, 30*time.Second, 1<<20)
			defer b.Close()
			begin, sum := time.Now(), 30*time.Second
			for _, p := range pauses {
				sum += p
			}
			if n, err := io.Copy(io.Discard, b); n != int64(len(pauses)) || !errors.Is(err, errSilent) {
				t.Errorf("%s: %d bytes, %v", name, n, err)
			}
			if took := time.Since(begin); took != sum {
				t.Errorf("%s: given up after %v and not %v", name, took, sum)
			}
		})
	}
}

// TestANodeThatTricklesIsNotWaitedForForEver: a byte each 29 s is no silence, and no part either.
func TestANodeThatTricklesIsNotWaitedForForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		pauses := make([]time.Duration, 10_000)
		for i := range pauses {
			pauses[i] = 29 * time.Second
		}
		b := newBody(ctx, cancel, &slow{ctx, pauses}, 30*time.Second, 1<<20)
		defer b.Close()
		begin := time.Now()
		if _, err := io.Copy(io.Discard, b); !errors.Is(err, errSlow) {
			t.Error(err)
		}
		if took := time.Since(begin); took < 2*time.Minute || took > 5*time.Minute {
			t.Errorf("it is waited for %v", took)
		}
	})
}

// TestANodeSendsNobodyElsewhere: neither to another host nor to another path.
func TestANodeSendsNobodyElsewhere(t *testing.T) {
	t.Parallel()
	p := protocoltest.Announcement([]byte("content"))
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		t.Error("another host was asked")
		_, _ = w.Write([]byte("content"))
	}))
	defer other.Close()
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	defer node.Close()
	d, err := NewDialer(DialOptions{Address: node.Listener.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if r, err := (&serverEnd{dialer: d}).OpenPart(t.Context(), p); err == nil {
		_ = r.Close()
		t.Error("the server went where the node sent it")
	}
}
