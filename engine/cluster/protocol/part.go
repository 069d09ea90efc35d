package protocol

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
)

// PartsPath is where a node gives its parts, by their work ids.
const PartsPath = "/parts/"

// MaxPart bounds a part, in bytes: one has two million rows at most.
const MaxPart = 4 << 30

// ErrAnnounced says that a node announces what it cannot have made.
var ErrAnnounced = errors.New("not the announcement of a part")

// PartWorkID is the work id of a part.
func PartWorkID(a engine.Artifact) string { return a.RunID + "/" + a.WorkerID + "/" + a.Name }

var sha256Pattern = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Check refuses an announcement that names something else than a part of its node, such as
// a file, another host or a path that climbs, before anything is done with what it says.
func (p WorkReady) Check() error {
	a := p.Artifact
	for _, name := range []string{a.RunID, a.WorkerID, a.Name} {
		if !engine.SafeName(name) {
			return fmt.Errorf("%w: %.200q is no name", ErrAnnounced, name)
		}
	}
	switch {
	case !strings.HasSuffix(a.Name, ".parquet"):
		return fmt.Errorf("%w: %s is no Parquet file", ErrAnnounced, a.Name)
	case p.WorkID != PartWorkID(a):
		return fmt.Errorf("%w: the work id of %s is %.200q", ErrAnnounced, PartWorkID(a), p.WorkID)
	case p.ArtifactURL != PartsPath+p.WorkID:
		return fmt.Errorf("%w: %s is said to be at %.200q", ErrAnnounced, p.WorkID, p.ArtifactURL)
	case a.SizeBytes < 0 || a.SizeBytes > MaxPart || a.RowCount < 0:
		return fmt.Errorf("%w: %s is said to have %d bytes and %d rows", ErrAnnounced, p.WorkID, a.SizeBytes, a.RowCount)
	case !sha256Pattern.MatchString(a.SHA256):
		return fmt.Errorf("%w: %.200q is no SHA-256", ErrAnnounced, a.SHA256)
	}
	return nil
}
