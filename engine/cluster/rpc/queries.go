package rpc

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/cluster/rpc/pb"
)

// queryToWire is toWire for what is about queries.
func queryToWire(m protocol.ToNode) (*pb.ToNode, error) {
	switch m := m.(type) {
	case protocol.AssignWork:
		return &pb.ToNode{Message: &pb.ToNode_AssignWork{AssignWork: &pb.AssignWork{QueryId: m.QueryID, LeafId: m.LeafID,
			WorkId: m.WorkID, Attempt: int64(m.Attempt), TaskJson: m.Task, SegmentsJson: m.Segments,
			Traceparent: m.TraceParent}}}, nil
	case protocol.CancelWork:
		return &pb.ToNode{Message: &pb.ToNode_CancelWork{CancelWork: &pb.CancelWork{QueryId: m.QueryID, LeafId: m.LeafID,
			WorkId: m.WorkID}}}, nil
	}
	return nil, fmt.Errorf("%w: %T", errUnknown, m)
}

// queryToNode reads what queryToWire has written.
func queryToNode(w any) (protocol.ToNode, error) {
	switch w := w.(type) {
	case *pb.ToNode_AssignWork:
		p := w.AssignWork
		return protocol.AssignWork{WorkKey: keyOf(p), Attempt: int(p.GetAttempt()), Task: p.GetTaskJson(),
			Segments: p.GetSegmentsJson(), TraceParent: p.GetTraceparent()}, nil
	case *pb.ToNode_CancelWork:
		return protocol.CancelWork{WorkKey: keyOf(w.CancelWork)}, nil
	}
	return nil, errUnknown
}

// queryFromWire is fromWire for what is about queries.
func queryFromWire(m protocol.FromNode) (*pb.FromNode, error) {
	switch m := m.(type) {
	case protocol.WorkAccepted:
		return &pb.FromNode{Message: &pb.FromNode_WorkAccepted{WorkAccepted: &pb.WorkAccepted{QueryId: m.QueryID,
			LeafId: m.LeafID, WorkId: m.WorkID}}}, nil
	case protocol.WorkRejected:
		return &pb.FromNode{Message: &pb.FromNode_WorkRejected{WorkRejected: &pb.WorkRejected{QueryId: m.QueryID,
			LeafId: m.LeafID, WorkId: m.WorkID, Reason: m.Reason}}}, nil
	case protocol.WorkFailed:
		return &pb.FromNode{Message: &pb.FromNode_WorkFailed{WorkFailed: &pb.WorkFailed{QueryId: m.QueryID,
			LeafId: m.LeafID, WorkId: m.WorkID, Reason: m.Reason, Code: m.Code, Final: m.Final,
			Cancelled: m.Cancelled}}}, nil
	case protocol.SegmentRequest:
		return &pb.FromNode{Message: &pb.FromNode_SegmentWanted{SegmentWanted: &pb.SegmentWanted{RunId: m.RunID,
			Name: m.Name, Sha256: m.SHA256}}}, nil
	}
	return nil, fmt.Errorf("%w: %T", errUnknown, m)
}

// queryFromNode reads what queryFromWire has written.
func queryFromNode(w any) (protocol.FromNode, error) {
	switch w := w.(type) {
	case *pb.FromNode_WorkAccepted:
		return protocol.WorkAccepted{WorkKey: keyOf(w.WorkAccepted)}, nil
	case *pb.FromNode_WorkRejected:
		return protocol.WorkRejected{WorkKey: keyOf(w.WorkRejected), Reason: w.WorkRejected.GetReason()}, nil
	case *pb.FromNode_WorkFailed:
		p := w.WorkFailed
		return protocol.WorkFailed{WorkKey: keyOf(p), Reason: p.GetReason(), Code: p.GetCode(), Final: p.GetFinal(),
			Cancelled: p.GetCancelled()}, nil
	case *pb.FromNode_SegmentWanted:
		p := w.SegmentWanted
		return protocol.SegmentRequest{RunID: p.GetRunId(), Name: p.GetName(), SHA256: p.GetSha256()}, nil
	}
	return nil, errUnknown
}

func keyOf(m interface {
	GetQueryId() string
	GetLeafId() string
	GetWorkId() string
}) protocol.WorkKey {
	return protocol.WorkKey{QueryID: m.GetQueryId(), LeafID: m.GetLeafId(), WorkID: m.GetWorkId()}
}

// PutSegment implements protocol.SegmentTaker.
func (e *serverEnd) PutSegment(ctx context.Context, sum string, bytes int64, content io.Reader) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := e.dialer.client.PutSegment(ctx)
	if err != nil {
		return fmt.Errorf("sending a segment: %w", withoutGRPC(err))
	}
	r := &pb.PutSegmentRequest{Sha256: sum, SizeBytes: bytes}
	for {
		// What was sent is gRPC's until it has gone.
		b := make([]byte, chunk)
		n, readErr := io.ReadFull(content, b)
		if readErr != nil && !errors.Is(readErr, io.EOF) && !errors.Is(readErr, io.ErrUnexpectedEOF) {
			return fmt.Errorf("reading a segment: %w", readErr)
		}
		r.Chunk = b[:n]
		if s.Send(r) != nil || readErr != nil {
			break // the answer says why
		}
		r = &pb.PutSegmentRequest{}
	}
	_, err = s.CloseAndRecv()
	switch status.Code(err) {
	case codes.AlreadyExists:
		return protocol.ErrNotWanted
	case codes.FailedPrecondition:
		return fmt.Errorf("%w: %w", protocol.ErrAborted, withoutGRPC(err))
	}
	if err != nil {
		return fmt.Errorf("sending a segment: %w", withoutGRPC(err))
	}
	return nil
}

// RefuseSegment implements protocol.SegmentTaker.
func (e *serverEnd) RefuseSegment(ctx context.Context, sum, reason string) error {
	s, err := e.dialer.client.PutSegment(ctx)
	if err == nil {
		_ = s.Send(&pb.PutSegmentRequest{Sha256: sum, Failure: reason}) // the answer says why
		_, err = s.CloseAndRecv()
	}
	if err != nil {
		return fmt.Errorf("refusing a segment: %w", withoutGRPC(err))
	}
	return nil
}

// maxSegment bounds a segment, in bytes.
const maxSegment = 1 << 30

// PutSegment implements the service. What comes is handed on as it comes; whether it is what was announced is known at
// its end.
func (l *Listener) PutSegment(s grpc.ClientStreamingServer[pb.PutSegmentRequest, pb.PutSegmentResponse]) error {
	if l.opts.Segment == nil {
		return status.Error(codes.Unimplemented, "this node takes no segments")
	}
	first, err := s.Recv()
	if err != nil {
		return err
	}
	size := first.GetSizeBytes()
	if size < 0 || size > maxSegment {
		return status.Error(codes.ResourceExhausted, "the segment is larger than segments may be")
	}
	in := &incoming{stream: s, rest: first.GetChunk(), sum: sha256.New(), left: size, want: first.GetSha256()}
	if why := first.GetFailure(); why != "" {
		in.failure = errors.New(why)
	}
	err = l.opts.Segment(s.Context(), first.GetSha256(), size, in)
	if errors.Is(err, protocol.ErrNotWanted) {
		return status.Error(codes.AlreadyExists, err.Error())
	}
	if err != nil {
		return status.Error(codes.FailedPrecondition, err.Error())
	}
	return s.SendAndClose(&pb.PutSegmentResponse{})
}

var errSegment = errors.New("the segment is not what was announced (size or SHA-256)")

// incoming is a segment as it comes. Its end is io.EOF when it is what was announced.
type incoming struct {
	stream grpc.ClientStreamingServer[pb.PutSegmentRequest, pb.PutSegmentResponse]
	rest   []byte
	sum    interface {
		io.Writer
		Sum([]byte) []byte
	}
	left    int64
	want    string
	failure error
}

// Read implements io.Reader.
func (in *incoming) Read(p []byte) (int, error) {
	if in.failure != nil {
		return 0, in.failure
	}
	for len(in.rest) == 0 {
		m, err := in.stream.Recv()
		if errors.Is(err, io.EOF) {
			if in.left != 0 || hex.EncodeToString(in.sum.Sum(nil)) != in.want {
				return 0, errSegment
			}
			return 0, io.EOF
		}
		if err != nil {
			return 0, err
		}
		in.rest = m.GetChunk()
	}
	n := copy(p, in.rest)
	if in.left -= int64(n); in.left < 0 {
		return 0, errSegment
	}
	_, _ = in.sum.Write(in.rest[:n]) // a hash takes all
	in.rest = in.rest[n:]
	return n, nil
}
