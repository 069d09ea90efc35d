package rpc

import (
	"context"
	"fmt"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/cluster/rpc/pb"
)

// window is how many bytes of rows may be on their way of one fragment: the memory of a consumer that is busy.
const window = 1 << 20

// Options are those of a connection that rows go over.
func Options() []grpc.DialOption {
	return []grpc.DialOption{grpc.WithReadBufferSize(64 << 10), grpc.WithWriteBufferSize(64 << 10),
		grpc.WithInitialWindowSize(window), grpc.WithInitialConnWindowSize(window)}
}

func keyToWire(k protocol.FragmentKey) *pb.FragmentKey {
	return &pb.FragmentKey{QueryId: k.QueryID, Epoch: k.Epoch, Attempt: k.Attempt}
}

func keyFromWire(k *pb.FragmentKey) protocol.FragmentKey {
	return protocol.FragmentKey{QueryID: k.GetQueryId(), Epoch: k.GetEpoch(), Attempt: k.GetAttempt()}
}

// Run gives a node a fragment, over a connection of its own, which Close of the link ends. Until the node has it, ctx
// bounds the call.
func Run(ctx context.Context, conn *grpc.ClientConn, conns *Conns, k protocol.FragmentKey, spec []byte) (
	protocol.FragmentLink, error) {
	if !conns.add(conn) {
		_ = conn.Close()
		return nil, protocol.ErrClosed
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	cut := func() { end(); conns.remove(conn); _ = conn.Close() }
	stopped := context.AfterFunc(ctx, end)
	s, err := pb.NewNodeServiceClient(conn).RunFragment(life)
	if err == nil {
		err = s.Send(&pb.RunFragmentRequest{Key: keyToWire(k), SpecJson: spec})
	}
	if !stopped() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		cut()
		return nil, fmt.Errorf("giving a node a fragment: %s", status.Convert(err).Message())
	}
	return newLink(func() (*pb.FragmentWord, error) { r, err := s.Recv(); return r.GetWord(), err },
		func(w *pb.FragmentWord) error { return s.Send(&pb.RunFragmentRequest{Word: w}) }, cut), nil
}

// Stop has a node end a fragment. One that knows no fragments has none.
func Stop(ctx context.Context, client pb.NodeServiceClient, k protocol.FragmentKey) error {
	_, err := client.StopFragment(ctx, &pb.StopFragmentRequest{Key: keyToWire(k)})
	if err == nil || status.Code(err) == codes.Unimplemented {
		return nil
	}
	return fmt.Errorf("ending a fragment on a node: %s", status.Convert(err).Message())
}

// List asks a node what it runs.
func List(ctx context.Context, client pb.NodeServiceClient, process string, since int64) (protocol.FragmentList,
	error) {
	r, err := client.ListFragments(ctx, &pb.ListFragmentsRequest{Process: process, Since: since})
	if status.Code(err) == codes.Unimplemented {
		return protocol.FragmentList{All: true}, nil
	}
	if err != nil {
		return protocol.FragmentList{}, fmt.Errorf("listing the fragments of a node: %s", status.Convert(err).Message())
	}
	l := protocol.FragmentList{Process: r.GetProcess(), Sequence: r.GetSequence(), All: r.GetAll()}
	for _, k := range r.GetRunning() {
		l.Running = append(l.Running, keyFromWire(k))
	}
	for _, k := range r.GetGone() {
		l.Gone = append(l.Gone, keyFromWire(k))
	}
	return l, nil
}

// Serve answers RunFragment on a node: the fragment runs as long as the call lasts.
func Serve(
	s grpc.BidiStreamingServer[pb.RunFragmentRequest, pb.RunFragmentResponse],
	host protocol.FragmentHost,
) error {
	first, err := s.Recv()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(s.Context())
	defer cancel()
	l := newLink(func() (*pb.FragmentWord, error) { r, err := s.Recv(); return r.GetWord(), err },
		func(w *pb.FragmentWord) error { return s.Send(&pb.RunFragmentResponse{Word: w}) }, cancel)
	defer func() { _ = l.Close() }()
	host.Run(ctx, keyFromWire(first.GetKey()), first.GetSpecJson(), l)
	return nil
}

// ServeStop answers StopFragment on a node.
func ServeStop(ctx context.Context, r *pb.StopFragmentRequest, host protocol.FragmentHost) (*pb.StopFragmentResponse,
	error) {
	if err := host.Stop(ctx, keyFromWire(r.GetKey())); err != nil {
		return nil, status.Error(codes.DeadlineExceeded, "the fragment has not ended")
	}
	return &pb.StopFragmentResponse{}, nil
}

// ServeList answers ListFragments on a node.
func ServeList(r *pb.ListFragmentsRequest, host protocol.FragmentHost) *pb.ListFragmentsResponse {
	list := host.List(r.GetProcess(), r.GetSince())
	w := &pb.ListFragmentsResponse{Process: list.Process, Sequence: list.Sequence, All: list.All}
	for _, k := range list.Running {
		w.Running = append(w.Running, keyToWire(k))
	}
	for _, k := range list.Gone {
		w.Gone = append(w.Gone, keyToWire(k))
	}
	return w
}

// Conns are the connections of the fragments on a node. The zero value has none; it is safe for concurrent use.
type Conns struct {
	mu     sync.Mutex
	open   map[*grpc.ClientConn]bool
	closed bool
}

func (c *Conns) add(conn *grpc.ClientConn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open = map[*grpc.ClientConn]bool{}
	}
	if !c.closed {
		c.open[conn] = true
	}
	return !c.closed
}

func (c *Conns) remove(conn *grpc.ClientConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, conn)
}

// Drop ends all of them; over: none is opened any more.
func (c *Conns) Drop(over bool) {
	c.mu.Lock()
	c.closed = c.closed || over
	open := c.open
	c.open = nil
	c.mu.Unlock()
	for conn := range open {
		_ = conn.Close()
	}
}
