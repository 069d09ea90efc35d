package controlrpc

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine/control/controltest"
)

// TestANodeThatFallsSilentIsNotWaitedFor: in the middle of a part, on a connection that stands.
func TestANodeThatFallsSilentIsNotWaitedFor(t *testing.T) {
	p := controltest.Announced(bytes.Repeat([]byte("x"), 1<<20))
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
	r, err := (&serverEnd{nil, d}).OpenPart(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if n, err := io.Copy(io.Discard, r); n != 1000 || !errors.Is(err, errSilent) {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// TestANodeSendsNobodyElsewhere: neither to another host nor to another path.
func TestANodeSendsNobodyElsewhere(t *testing.T) {
	p := controltest.Announced([]byte("content"))
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
	if r, err := (&serverEnd{nil, d}).OpenPart(t.Context(), p); err == nil {
		_ = r.Close()
		t.Error("the server went where the node sent it")
	}
}
