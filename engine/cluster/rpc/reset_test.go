package rpc

import (
	"bytes"
	"io"
	"net"
	"runtime"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// TestCallsThatAreGivenUpAtOnceHoldNothing: somebody opens calls and resets each before it is answered, many
// more than may stand at a time. The stream of the server goes on beside it, and nothing is left.
func TestCallsThatAreGivenUpAtOnceHoldNothing(t *testing.T) {
	l, goesOn := besieged(t)
	before := runtime.NumGoroutine()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(io.Discard, conn)
	}()
	f := http2.NewFramer(conn, nil)
	_ = f.WriteSettings()
	var headers bytes.Buffer
	e := hpack.NewEncoder(&headers)
	for _, h := range [][2]string{{":method", "POST"}, {":scheme", "http"}, {":authority", "x"},
		{":path", "/loadstone.control.v1.NodeService/Control"}, {"content-type", "application/grpc"}, {"te", "trailers"}} {
		_ = e.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]})
	}
	const calls = 20_000
	most, cut := 0, false
	for i := range uint32(calls) {
		err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: 2*i + 1, BlockFragment: headers.Bytes(), EndHeaders: true})
		if err == nil {
			err = f.WriteRSTStream(2*i+1, http2.ErrCodeCancel)
		}
		if cut = err != nil; cut {
			break // the node has had enough, which is as good
		}
		if i%1000 == 0 {
			most = max(most, runtime.NumGoroutine()-before)
			goesOn("calls that were given up")
		}
	}
	goesOn("all calls that were given up")
	t.Logf("at most %d goroutines; cut: %v", most, cut)
	if most > 10*maxCalls {
		t.Errorf("%d goroutines, and %d calls may stand at a time", most, maxCalls)
	}
	conn.Close()
	<-read
	for begin := time.Now(); runtime.NumGoroutine() > before; time.Sleep(10 * time.Millisecond) {
		if time.Since(begin) > time.Minute {
			t.Fatalf("%d goroutines are left", runtime.NumGoroutine()-before)
		}
	}
}
