package rpc

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/cluster/rpc/pb"
	"github.com/loadstone-db/loadstone/engine/cluster/version"
)

// later puts a field into a message that this version does not know.
func later[M proto.Message](m M, number protowire.Number) M {
	raw := protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), []byte("of a later version"))
	m.ProtoReflect().SetUnknown(raw)
	return m
}

// laterNode is a node of a version that has messages and fields which this one does not know, and
// leaves out what it need not say.
type laterNode struct {
	pb.UnimplementedNodeServiceServer
	open chan *pb.Open
}

func (n laterNode) Control(s grpc.BidiStreamingServer[pb.ToNode, pb.FromNode]) error {
	first, err := s.Recv()
	if err != nil {
		return err
	}
	n.open <- first.GetOpen()
	if err := s.SendHeader(metadata.Pairs(admitted, "1", "of-a-later-version", "1")); err != nil {
		return err
	}
	for _, m := range []*pb.FromNode{
		later(&pb.FromNode{}, 500),
		{Message: &pb.FromNode_Hello{Hello: later(&pb.Hello{NodeId: "n"}, 500)}},
		later(&pb.FromNode{}, 900), {},
		{Message: &pb.FromNode_Pong{Pong: later(&pb.Pong{Seq: 5}, 500)}},
	} {
		if err := s.Send(m); err != nil {
			return err
		}
	}
	<-s.Context().Done()
	return nil
}

// TestWhatALaterVersionSaysIsIgnored: messages and fields that are not known end no stream, and those
// that an earlier one leaves out are zero.
func TestWhatALaterVersionSaysIsIgnored(t *testing.T) {
	t.Parallel()
	t.Run("by the server", func(t *testing.T) {
		socket, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		n, g := laterNode{open: make(chan *pb.Open, 1)}, grpc.NewServer()
		pb.RegisterNodeServiceServer(g, n)
		served := make(chan error, 1)
		go func() { served <- g.Serve(socket) }()
		defer func() { g.Stop(); <-served }()
		d, err := NewDialer(DialOptions{Address: socket.Addr().String(), Process: "server-1", Version: "v1.4.0"})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = d.Close() }()
		end, err := d.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = end.Close() }()
		if o := <-n.open; o.GetServerVersion() != "v1.4.0" || o.GetProtocol() != version.Protocol {
			t.Errorf("the server says %v", o)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if m, err := end.Receive(ctx); err != nil || m.(protocol.Hello).NodeID != "n" || m.(protocol.Hello).Protocol != 0 {
			t.Fatalf("%v, %v", m, err)
		}
		if m, err := end.Receive(ctx); err != nil || m.(protocol.Pong).Seq != 5 {
			t.Fatalf("%v, %v", m, err)
		}
	})
	t.Run("by the node", func(t *testing.T) {
		l, s := opening(t, "v1.3.0", later(&pb.Open{ServerVersion: "v1.4.0", ServerProcess: "server-1", Protocol: 2,
			Session: 1}, 500))
		for _, m := range []*pb.ToNode{
			later(&pb.ToNode{}, 500), later(&pb.ToNode{}, 900), {},
			{Message: &pb.ToNode_Ping{Ping: later(&pb.Ping{Seq: 5}, 500)}},
		} {
			if err := s.Send(m); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		node, err := l.Accept(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = node.Close() }()
		if m, err := node.Receive(ctx); err != nil || m.(protocol.Ping).Seq != 5 {
			t.Fatalf("%v, %v", m, err)
		}
	})
}

// opening opens a stream to a node of a version as a server that says what it says.
func opening(t *testing.T, version string, open *pb.Open) (*Listener, pb.NodeService_ControlClient) {
	t.Helper()
	l, err := Listen(t.Context(), ListenOptions{Address: "127.0.0.1:0", Version: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	s, err := stranger(t, l).Control(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Send(&pb.ToNode{Message: &pb.ToNode_Open{Open: open}}); err != nil {
		t.Fatal(err)
	}
	return l, s
}

// TestAServerThatIsTooOldToCompareVersionsIsRefusedByTheNode, with both versions and the cure; one that
// compares them itself decides itself.
func TestAServerThatIsTooOldToCompareVersionsIsRefusedByTheNode(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		open    *pb.Open
		refused bool
	}{
		{&pb.Open{ServerVersion: "v1.2.0", Session: 1}, true},
		{&pb.Open{ServerVersion: "v1.3.0", Session: 1}, false},
		{&pb.Open{ServerVersion: "8629e92", Session: 1}, false},
		{&pb.Open{Session: 1}, false},
		{&pb.Open{ServerVersion: "v1.2.0", Protocol: 1, Session: 1}, false},
	} {
		l, s := opening(t, "v1.4.0", tt.open)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if !tt.refused {
			e, err := l.Accept(ctx)
			if err != nil {
				t.Fatalf("%v: %v", tt.open, err)
			}
			_ = e.Close()
			continue
		}
		_, err := s.Recv()
		if status.Code(err) != codes.FailedPrecondition {
			t.Fatalf("%v: %v", tt.open, err)
		}
		for _, part := range []string{"v1.2.0", "v1.4.0", "upgrade the server to 1.4"} {
			if !strings.Contains(withoutGRPC(err).Error(), part) {
				t.Errorf("%v does not say %q", err, part)
			}
		}
		short, over := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if _, err := l.Accept(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the stream was let in: %v", err)
		}
		over()
	}
}
