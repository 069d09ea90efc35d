// Package version says which versions of a server and a node work together: those that are at most
// one minor version apart. It is pure. Both sides say who they are when a stream begins, and the
// server decides; a node decides about a server that is too old to.
package version

import (
	"fmt"
	"regexp"
	"strconv"
)

// Protocol is the number of the messages between servers and nodes as this program speaks them. It is
// raised with what an older end would misunderstand, once in a minor version at most; what an older
// end may ignore raises nothing.
//
// Version 2: the server sends which databases are the servers' own, and the node refuses runs against them
// (AssignRun.Own). A node of version 1 would dial them, so the server assigns it no runs.
//
// Version 3: the server sends sampled keys and whole rows of tables (Pool.Keys, Pool.Values). A node of version 2 would
// silently look up other keys than the server reports, so the server assigns it no runs either.
const Protocol = 3

// guarded is the protocol from which nodes keep runs out of the servers' own databases, keyed that from which they know
// sampled keys.
const guarded, keyed = 2, 3

// Build is who speaks.
type Build struct {
	// Version is the program's: v1.2.3 or 1.2.3, with or without more behind it. Anything else, as of a
	// program that was built between versions, is told by its protocol alone.
	Version string
	// Protocol is the number of its messages, 0 of a program that says none: the first.
	Protocol int
}

// SkewError says that a server and a node are too far apart. It is an error for operators.
type SkewError struct {
	Server, Node Build
	// Older is which of them is to be upgraded.
	Older string
	// Unguarded: the versions would do, but the node does not know the servers' own databases.
	Unguarded bool
	// Unkeyed: the versions would do, but the node does not know the sampled keys of tables.
	Unkeyed bool
}

// Error names both versions and the cure.
func (s *SkewError) Error() string {
	cure := "upgrade the " + s.Older
	if v, ok := released(s.newer().Version); ok && s.Server.Version != s.Node.Version {
		cure += " to " + v.text()
	}
	why := ", which are more than one minor version apart"
	switch {
	case s.Unguarded:
		why = ", and the node would not notice that a run leads into the server's own databases"
	case s.Unkeyed:
		why = ", and the node would look up other keys of tables than those that the server has sampled"
	}
	return fmt.Sprintf("the node is Loadstone %s and the server %s%s: %s", s.Node.text(), s.Server.text(), why, cure)
}

func (s *SkewError) newer() Build {
	if s.Older == "node" {
		return s.Server
	}
	return s.Node
}

func (b Build) text() string {
	version := b.Version
	switch {
	case version == "":
		version = "of an unknown version"
	case len(version) > maxLength:
		version = version[:maxLength] + "…" // whoever says it may say anything
	}
	if _, ok := released(b.Version); !ok || b.protocol() != Protocol {
		return fmt.Sprintf("%s (protocol %d)", version, b.protocol())
	}
	return version
}

const maxLength = 64

func (b Build) protocol() int { return max(b.Protocol, 1) }

// generation counts the protocols by the minor versions that raised them: 2 and 3 came in one.
func (b Build) generation() int {
	if p := b.protocol(); p < keyed {
		return p
	}
	return b.protocol() - 1
}

// Check returns a *SkewError when a server and a node do not work together, else nil.
func Check(server, node Build) error {
	apart := server.generation() - node.generation()
	if -1 <= apart && apart <= 1 {
		s, known := released(server.Version)
		n, alsoKnown := released(node.Version)
		switch {
		case !known || !alsoKnown:
			return checkNode(server, node)
		case s.major != n.major:
			apart = s.major - n.major
		case s.minor-n.minor < -1 || s.minor-n.minor > 1:
			apart = s.minor - n.minor
		default:
			return checkNode(server, node)
		}
	}
	older := "server"
	if apart > 0 {
		older = "node"
	}
	return &SkewError{Server: server, Node: node, Older: older}
}

// checkNode refuses a node that a server of this protocol cannot trust with a connection string, or with keys.
func checkNode(server, node Build) error {
	switch {
	case server.protocol() >= guarded && node.protocol() < guarded:
		return &SkewError{Server: server, Node: node, Older: "node", Unguarded: true}
	case server.protocol() >= keyed && node.protocol() < keyed:
		return &SkewError{Server: server, Node: node, Older: "node", Unkeyed: true}
	}
	return nil
}

type number struct{ major, minor int }

func (n number) text() string { return fmt.Sprintf("%d.%d", n.major, n.minor) }

// tag is a version, and what git describe puts behind one.
var tag = regexp.MustCompile(`^v?(\d{1,6})\.(\d{1,6})(\.\d+)?([-+].*)?$`)

// released reads a version; false for what is none, as the name of a commit.
func released(version string) (n number, ok bool) {
	parts := tag.FindStringSubmatch(version)
	if parts == nil {
		return number{}, false
	}
	n.major, _ = strconv.Atoi(parts[1])
	n.minor, _ = strconv.Atoi(parts[2])
	return n, true
}
