package rpc

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/cluster/rpc/pb"
)

// besieged is a node with a token, and a stream of a server that must go on whatever others do.
func besieged(t *testing.T) (l *Listener, goesOn func(after string)) {
	t.Helper()
	s := Security{Token: secret.New("a secret that others do not know")}
	l, err := Listen(t.Context(), ListenOptions{Address: "127.0.0.1:0", Security: s})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	d, err := NewDialer(DialOptions{Address: l.Addr().String(), Security: s, Process: "server-1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	ends := make(chan protocol.NodeEnd, 1)
	go func() {
		if e, err := l.Accept(t.Context()); err == nil {
			ends <- e
		}
	}()
	end, err := d.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	node := <-ends
	t.Cleanup(func() { _ = end.Close(); _ = node.Close() })
	seq := int64(0)
	return l, func(after string) {
		t.Helper()
		seq++
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := end.Send(ctx, protocol.Ping{Seq: seq}); err != nil {
			t.Fatalf("after %s: %v", after, err)
		}
		if m, err := node.Receive(ctx); err != nil || m.(protocol.Ping).Seq != seq {
			t.Fatalf("after %s: %v, %v", after, m, err)
		}
		if err := node.Send(ctx, protocol.Pong{Seq: seq}); err != nil {
			t.Fatalf("after %s: %v", after, err)
		}
		if m, err := end.Receive(ctx); err != nil || m.(protocol.Pong).Seq != seq {
			t.Fatalf("after %s: %v, %v", after, m, err)
		}
	}
}

// stranger speaks gRPC to the node, with options of its own.
func stranger(t *testing.T, l *Listener, opts ...grpc.DialOption) pb.NodeServiceClient {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+l.Addr().String(),
		append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return pb.NewNodeServiceClient(conn)
}

// TestAMessageOf100MBEndsItsStreamOnly, also of somebody who knows the token.
func TestAMessageOf100MBEndsItsStreamOnly(t *testing.T) {
	t.Parallel()
	l, goesOn := besieged(t)
	huge := &pb.ToNode{Message: &pb.ToNode_Open{Open: &pb.Open{ServerProcess: strings.Repeat("x", 100<<20)}}}
	for name, c := range map[string]struct {
		security Security
		want     codes.Code
	}{"a stranger": {Security{}, codes.Unauthenticated}, "a server": {l.opts.Security, codes.ResourceExhausted}} {
		client := stranger(t, l, grpc.WithPerRPCCredentials(c.security))
		s, err := client.Control(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_ = s.Send(huge)
		if _, err = s.Recv(); status.Code(err) != c.want {
			t.Errorf("%s: %v", name, err)
		}
		goesOn("100 MB of " + name)
	}
}

// TestALargeCallOfAStrangerIsNotRead: it is refused by its headers, and what anybody may call takes little.
func TestALargeCallOfAStrangerIsNotRead(t *testing.T) {
	t.Parallel()
	l, goesOn := besieged(t)
	for name, c := range map[string]struct {
		path    string
		refused bool
	}{
		"a server's call": {"/loadstone.control.v1.NodeService/RequestCertificate", true},
		"a probe":         {"/grpc.health.v1.Health/Check", false},
	} {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second)) // less than a stranger may stay anyway
		if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
			t.Fatal(err)
		}
		f := http2.NewFramer(conn, conn)
		_ = f.WriteSettings()
		var fields bytes.Buffer
		e := hpack.NewEncoder(&fields)
		for _, h := range [][2]string{{":method", "POST"}, {":scheme", "http"}, {":path", c.path}, {":authority", "x"},
			{"content-type", "application/grpc"}, {"te", "trailers"}} {
			_ = e.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]})
		}
		_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: fields.Bytes(), EndHeaders: true})
		// A message of 32 MB that never comes to its end. Who is refused by the headers is so before any of it.
		said := make(chan struct{})
		go func() {
			defer close(said)
			if c.refused {
				return
			}
			_ = f.WriteData(1, false, []byte{0, 2, 0, 0, 0})
			for range 32 {
				if f.WriteData(1, false, make([]byte, 16<<10)) != nil {
					return
				}
			}
		}()
		status, cut := "", false
		d := hpack.NewDecoder(4096, func(h hpack.HeaderField) {
			if h.Name == "grpc-status" {
				status = h.Value
			}
		})
		for status == "" && !cut {
			frame, err := f.ReadFrame()
			if isTimeout(err) {
				t.Fatalf("%s: a call that does not end is held", name)
			}
			if cut = err != nil; cut {
				break
			}
			switch frame := frame.(type) {
			case *http2.HeadersFrame:
				_, _ = d.Write(frame.HeaderBlockFragment())
			case *http2.PingFrame:
				if <-said; !frame.IsAck() { // otherwise the silence ends the connection
					_ = f.WritePing(true, frame.Data)
				}
			}
		}
		if c.refused && status != "16" || !c.refused && !cut {
			t.Errorf("%s: status %q, cut %v", name, status, cut)
		}
		conn.Close()
		<-said
		goesOn(name)
	}
}

// TestAFloodOfPingsIsCut: the connection ends, and only that.
func TestAFloodOfPingsIsCut(t *testing.T) {
	t.Parallel()
	l, goesOn := besieged(t)
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	f := http2.NewFramer(conn, conn)
	_ = f.WriteSettings()
	pinged := make(chan struct{})
	go func() {
		defer close(pinged)
		for range 10_000 {
			if f.WritePing(false, [8]byte{1}) != nil {
				return
			}
		}
	}()
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			if errors.Is(err, context.DeadlineExceeded) || isTimeout(err) {
				t.Error("it goes on for ever")
			}
			break
		}
		if g, ok := frame.(*http2.GoAwayFrame); ok && g.ErrCode == http2.ErrCodeEnhanceYourCalm {
			break
		}
	}
	conn.Close()
	<-pinged
	goesOn("a flood of pings")
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

// TestConnectionsThatSayNothingKeepNoServerOut: the one that came first has to go.
func TestConnectionsThatSayNothingKeepNoServerOut(t *testing.T) {
	t.Parallel()
	l, goesOn := besieged(t)
	first, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	for range maxUnauthenticated + 10 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	goesOn("many connections")
	_ = first.SetDeadline(time.Now().Add(helloTimeout / 2))
	if _, err := first.Read(make([]byte, 1)); err == nil || isTimeout(err) {
		t.Errorf("the first of too many: %v", err)
	}
	d, err := NewDialer(DialOptions{Address: l.Addr().String(), Security: l.opts.Security, Process: "server-2"})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	begin := time.Now()
	if _, err := dialled(t, l, d); err != nil {
		t.Errorf("a server that comes then: %v", err)
	}
	if took := time.Since(begin); took > 3*time.Second {
		t.Errorf("a server that comes then waits for %s", took)
	}
}

// TestAStrangerHasHalfAMinute: a probe may stay for that, a server as long as it likes.
func TestAStrangerHasHalfAMinute(t *testing.T) {
	t.Parallel()
	l, goesOn := besieged(t)
	l.mux.unauthenticated.mu.Lock()
	l.mux.unauthenticated.limit = 300 * time.Millisecond
	l.mux.unauthenticated.mu.Unlock()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	begin := time.Now()
	_ = conn.SetDeadline(begin.Add(helloTimeout - time.Second))
	if _, err := io.WriteString(conn, "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(conn); isTimeout(err) || !strings.Contains(string(text), "200 OK") {
		t.Errorf("%q, %v", text, err)
	}
	if took := time.Since(begin); took < 200*time.Millisecond {
		t.Errorf("it was cut after %s", took)
	}
	goesOn("a stranger")
	// The other side sees the end before the connection is forgotten.
	left := 1
	for begin := time.Now(); left > 0 && time.Since(begin) < time.Minute; time.Sleep(time.Millisecond) {
		l.mux.unauthenticated.mu.Lock()
		left = l.mux.unauthenticated.all.Len()
		l.mux.unauthenticated.mu.Unlock()
	}
	if left != 0 {
		t.Errorf("%d are remembered", left)
	}
}

// TestManyCallsOfAStrangerAreRefused, each at once, and held by nobody.
func TestManyCallsOfAStrangerAreRefused(t *testing.T) {
	t.Parallel()
	l, goesOn := besieged(t)
	client := stranger(t, l)
	for range 500 {
		s, err := client.Control(t.Context())
		if err == nil {
			_, err = s.Recv()
		}
		if status.Code(err) != codes.Unauthenticated {
			t.Fatal(err)
		}
	}
	goesOn("500 calls")
	// Whoever knows the token has so many calls at a time, and no more. They are open to the end of the
	// test; the one too many has a deadline of its own, at which no other ends and makes room for it.
	admitted := stranger(t, l, grpc.WithPerRPCCredentials(l.opts.Security))
	// An answer brings the node's limit along.
	if _, err := admitted.RequestCertificate(t.Context(), &pb.RequestCertificateRequest{}); status.Code(err) !=
		codes.FailedPrecondition {
		t.Fatal(err)
	}
	for n := range maxCalls {
		if _, err := admitted.Control(t.Context()); err != nil {
			t.Fatalf("call %d: %v", n+1, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := admitted.Control(ctx); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("%d calls at a time, %v", maxCalls+1, err)
	}
	goesOn("too many calls")
}

// TestTheHealthServiceSaysThatANodeDrains, to strangers too, and before its stream ends.
func TestTheHealthServiceSaysThatANodeDrains(t *testing.T) {
	t.Parallel()
	l, goesOn := besieged(t)
	conn, err := grpc.NewClient("passthrough:///"+l.Addr().String(),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	watch, err := healthpb.NewHealthClient(conn).Watch(t.Context(), &healthpb.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []healthpb.HealthCheckResponse_ServingStatus{healthpb.HealthCheckResponse_SERVING,
		healthpb.HealthCheckResponse_NOT_SERVING} {
		if r, err := watch.Recv(); err != nil || r.GetStatus() != want {
			t.Fatalf("%v, %v", r, err)
		}
		l.Draining()
	}
	goesOn("it drains")
}
