package worker

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/engine/worker/diskbudget"
)

// ready announces finished parts and keeps them until they are acknowledged. Those that
// were announced early are left as they are.
func (n *Node) ready(parts []engine.Artifact, dir string, salvaged bool) {
	for _, a := range parts {
		p := n.announcement(a)
		p.Salvaged = salvaged
		if salvaged {
			p.Totals = readCounts(dir, a.ResultID)
			n.disk.apply(diskbudget.Found{Key: p.WorkID, Kind: diskbudget.Record, Run: a.RunID, Bytes: a.SizeBytes})
		}
		n.mu.Lock()
		if n.announcedEarly[p.WorkID] {
			delete(n.announcedEarly, p.WorkID)
			n.mu.Unlock()
			continue
		}
		p.Pressing = n.draining // its process is about to end, and with it perhaps its disk
		n.keep(p, filepath.Join(dir, a.Name))
		n.mu.Unlock()
		if !salvaged {
			n.out.Put(p)
		}
		n.disk.apply(diskbudget.Announced{Key: p.WorkID})
	}
}

// readyEarly announces a part while its run worker has load, because the spool needs the room.
func (n *Node) readyEarly(a engine.Artifact) {
	p := n.announcement(a)
	p.Pressing = true
	n.mu.Lock()
	_, held := n.parts[p.WorkID]
	if !held { // a part of an earlier process has been announced
		n.keep(p, filepath.Join(n.spool(a.RunID, a.WorkerID), a.Name))
		n.announcedEarly[p.WorkID] = true
	}
	n.mu.Unlock()
	if !held {
		n.out.Put(p)
	}
}

func (n *Node) announcement(a engine.Artifact) protocol.WorkReady {
	if a.Kind == "" {
		a.Kind = record.KindExecutions
	}
	id := protocol.PartWorkID(a)
	return protocol.WorkReady{WorkID: id, NodeID: n.opts.NodeID, Artifact: a, ArtifactURL: protocol.PartsPath + id}
}

// keep remembers a part until it is acknowledged. It needs mu.
func (n *Node) keep(p protocol.WorkReady, path string) {
	if _, known := n.parts[p.WorkID]; !known {
		n.waits[workerKey{p.Artifact.RunID, p.Artifact.WorkerID}]++
	}
	n.parts[p.WorkID] = heldPart{p, path}
}

// releasePart forgets a part. It needs mu.
func (n *Node) releasePart(p heldPart) {
	delete(n.parts, p.WorkID)
	worker := workerKey{p.Artifact.RunID, p.Artifact.WorkerID}
	if n.waits[worker]--; n.waits[worker] <= 0 {
		delete(n.waits, worker)
	}
}

// acknowledged lets go of a part that a server has. It stays on the disk for a while.
func (n *Node) acknowledged(ack protocol.ArtifactAck) {
	id := ack.RunID + "/" + ack.WorkerID + "/" + ack.Name
	n.mu.Lock()
	p, ok := n.parts[id]
	if !ok || p.Artifact.SHA256 != ack.SHA256 {
		n.mu.Unlock()
		return
	}
	n.releasePart(p)
	n.stored[id] = true
	// Under this name another process does not announce it again. Who opens the part finds it
	// under one of the two, because mu is held.
	if err := os.Rename(p.path, p.path+record.StoredSuffix); err != nil && !errors.Is(err, os.ErrNotExist) {
		n.opts.Log.Warn().Err(err).Str("run_id", ack.RunID).Str("part", ack.Name).
			Msg("an acknowledged part cannot be renamed")
	}
	n.mu.Unlock()
	n.disk.apply(diskbudget.Acknowledged{Key: id})
	n.disk.apply(diskbudget.Tick{}) // where nobody asks again it goes at once
}

// forgetFiles forgets files that are not on the disk any more, and removes the folders that are empty then.
func (n *Node) forgetFiles(ids []string) {
	if n.queries != nil {
		n.queries.FilesGone(ids)
	}
	n.mu.Lock()
	var empty []string
	for _, id := range ids {
		if !n.stored[id] {
			continue
		}
		delete(n.stored, id)
		dir := filepath.Dir(n.path(id))
		worker := workerKey{filepath.Base(filepath.Dir(dir)), filepath.Base(dir)}
		if _, here := n.held[worker]; !here && n.waits[worker] == 0 {
			empty = append(empty, dir)
		}
	}
	n.mu.Unlock()
	for _, dir := range empty {
		deleteCounts(dir)
		removeEmptyDirs(dir)
	}
}

// dropStored removes what servers have: nobody asks this process for it any more.
func (n *Node) dropStored() {
	n.mu.Lock()
	ids := slices.Collect(maps.Keys(n.stored))
	n.mu.Unlock()
	for _, id := range ids {
		_ = os.Remove(n.path(id) + record.StoredSuffix) // what stays is removed by the next process
		n.disk.apply(diskbudget.Gone{Key: id})
	}
	n.forgetFiles(ids)
}

// Part opens a part that the node holds, by its work id: what it does not hold is
// os.ErrNotExist, whatever lies on its disk.
func (n *Node) Part(workID string) (*os.File, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	p, ok := n.parts[workID]
	stored := n.stored[workID]
	if stored {
		p.path = n.path(workID) + record.StoredSuffix
	}
	if !ok && !stored {
		if n.queries != nil {
			return n.queries.Open(workID)
		}
		return nil, os.ErrNotExist
	}
	return os.Open(p.path)
}

// path is where a part lies, by its work id.
func (n *Node) path(workID string) string {
	return filepath.Join(n.opts.SpoolDir, filepath.FromSlash(workID))
}

// removeEmptyDirs removes the folder of one run worker's parts, and the run's, when they
// are empty; Remove refuses others.
func removeEmptyDirs(dir string) {
	_ = os.Remove(dir)
	_ = os.Remove(filepath.Dir(dir))
}

// spool is the folder of one run worker's parts.
func (n *Node) spool(runID, workerID string) string {
	return filepath.Join(n.opts.SpoolDir, runID, workerID)
}

// salvageSpool finds the parts that a killed process left behind.
func (n *Node) salvageSpool() {
	dirs, err := filepath.Glob(filepath.Join(n.opts.SpoolDir, "*", "*"))
	if err != nil {
		return
	}
	for _, dir := range dirs {
		parts, err := record.Salvage(dir)
		var kept *record.QuarantineError
		switch {
		case errors.As(err, &kept):
			run, worker := filepath.Base(filepath.Dir(dir)), filepath.Base(dir)
			for _, p := range kept.Parts {
				n.opts.Log.Error().Err(p.Err).Str("run_id", run).Str("worker_id", worker).Str("path", filepath.Join(dir, p.Name)).
					Msg("a part of an earlier process cannot be opened; it was moved aside and is tried again at the next start")
				n.disk.apply(diskbudget.Found{Key: run + "/" + worker + "/" + p.Name, Kind: diskbudget.Record, Run: run,
					Bytes: sizeOf(filepath.Join(dir, p.Name))})
				n.quarantined = append(
					n.quarantined,
					protocol.QuarantinedPart{RunID: run, WorkerID: worker, Name: p.Name, Reason: p.Err.Error()},
				)
			}
		case err != nil:
			n.opts.Log.Warn().Err(err).Str("folder", dir).Msg("parts of an earlier process cannot be read")
			continue
		}
		if len(parts) == 0 {
			if kept != nil {
				continue
			}
			deleteCounts(dir)
			removeEmptyDirs(dir)
			continue
		}
		n.opts.Log.Info().Str("folder", dir).Int("parts", len(parts)).Msg("found parts of an earlier process")
		n.ready(parts, dir, true)
	}
}

// sizeOf is the size of a file, 0 where it is not known.
func sizeOf(path string) int64 {
	st, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return st.Size()
}
