package rpc

import (
	"errors"

	"google.golang.org/protobuf/proto"

	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/cluster/rpc/pb"
)

// errPart: more is to come of the message.
var errPart = errors.New("there is more to come")

// A Hello of which the parts take more than helloPiece bytes travels in pieces, so that a node with
// any number of parts can introduce itself. mostParts bounds what a server holds of one that is not
// complete; a node with more announces them once the first are acknowledged and it says Hello again.
const (
	helloPiece = 4 << 20
	maxParts   = 1 << 20
)

// one is a message that travels in one piece.
func one[Out any, S any](write func(Out) (S, error)) func(Out) ([]S, error) {
	return func(m Out) ([]S, error) {
		w, err := write(m)
		return []S{w}, err
	}
}

// piecesFromWire is fromWire, with a Hello in as many pieces as it takes.
func piecesFromWire(m protocol.FromNode) ([]*pb.FromNode, error) {
	w, err := fromWire(m)
	if err != nil {
		return nil, err
	}
	whole := w.GetHello()
	if whole == nil {
		return []*pb.FromNode{w}, nil
	}
	parts, aside := whole.GetParts(), whole.GetAside()
	parts = parts[:min(len(parts), maxParts)]
	aside = aside[:min(len(aside), maxParts)]
	var pieces []*pb.FromNode
	for number := int64(0); number == 0 || len(parts)+len(aside) > 0; number++ {
		// Each says what the node is and carries, for a server that takes each for a Hello of its own.
		h := &pb.Hello{NodeId: whole.NodeId, Version: whole.Version, Protocol: whole.Protocol, Session: whole.Session,
			Capacity: whole.Capacity, Workers: whole.Workers, Queries: whole.Queries, Piece: number}
		room := helloPiece
		h.Parts, room = fitting(parts, room)
		h.Aside, _ = fitting(aside, room)
		if len(h.Parts)+len(h.Aside) == 0 { // one that is larger than a piece goes alone
			h.Parts = parts[:min(len(parts), 1)]
			h.Aside = aside[:min(len(aside), 1-len(h.Parts))]
		}
		parts, aside = parts[len(h.Parts):], aside[len(h.Aside):]
		h.More = len(parts)+len(aside) > 0
		pieces = append(pieces, &pb.FromNode{Message: &pb.FromNode_Hello{Hello: h}})
	}
	return pieces, nil
}

// fitting are the first of all that take no more than that many bytes, and what is left of these.
func fitting[M proto.Message](all []M, room int) ([]M, int) {
	for i, m := range all {
		size := proto.Size(m)
		if size > room {
			return all[:i], 0
		}
		room -= size
	}
	return all, room
}

// whole reads messages of a node, and puts a Hello together that comes in pieces.
func whole(read func(*pb.FromNode) (protocol.FromNode, error)) func(*pb.FromNode) (protocol.FromNode, error) {
	var so protocol.Hello
	next := int64(0)
	return func(w *pb.FromNode) (protocol.FromNode, error) {
		m, err := read(w)
		h, ok := m.(protocol.Hello)
		if err != nil || !ok {
			return m, err
		}
		piece, more := w.GetHello().GetPiece(), w.GetHello().GetMore()
		switch {
		case piece == 0: // one that was not said to its end begins anew
			so = protocol.Hello{}
		case piece != next:
			return nil, errors.New("a piece of a Hello is missing")
		}
		next = piece + 1
		if len(so.Parts)+len(h.Parts) > maxParts || len(so.Quarantined)+len(h.Quarantined) > maxParts {
			return nil, errors.New("a node announces too many parts at a time")
		}
		if piece > 0 {
			h.Parts, h.Quarantined = append(so.Parts, h.Parts...), append(so.Quarantined, h.Quarantined...)
		}
		if more {
			so = h
			return nil, errPart
		}
		so = protocol.Hello{}
		return h, nil
	}
}
