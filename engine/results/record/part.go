package record

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/google/uuid"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/loadstone-db/loadstone/engine"
)

const (
	magic            = "PAR1"
	extension        = ".parquet"
	unfinishedSuffix = ".tmp"
)

// file is what a part needs of its file; tests put failing ones in its place.
type file interface {
	io.Writer
	Sync() error
	Close() error
}

func createFile(path string) (file, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o640)
}

// part is one file under construction.
type part struct {
	path     string // final
	f        file
	sum      hash.Hash
	size     int64
	groups   []format.RowGroup
	rows     int64
	minTime  int64
	maxTime  int64
	opened   time.Time
	opts     *WriterOptions
	reserved int64 // of the quota
}

func (p *part) name() string { return filepath.Base(p.path) }

func openPart(opts *WriterOptions, path string, create func(string) (file, error)) (*part, error) {
	p := &part{path: path, sum: sha256.New(), opened: time.Now(), opts: opts}
	if err := p.reserveQuota(len(magic)); err != nil {
		return nil, err
	}
	f, err := create(path + unfinishedSuffix)
	if err != nil {
		p.releaseQuota()
		return nil, err
	}
	p.f = f
	if err := p.write([]byte(magic)); err != nil {
		p.abandon()
		return nil, err
	}
	return p, nil
}

func (p *part) write(b []byte) error {
	n, err := p.f.Write(b)
	p.sum.Write(b[:n])
	p.size += int64(n)
	return err
}

func (p *part) add(bytes []byte, group format.RowGroup, minTime, maxTime int64) error {
	if err := p.reserveQuota(len(bytes)); err != nil {
		return err
	}
	if err := p.write(bytes); err != nil {
		return err
	}
	if p.rows == 0 || minTime < p.minTime {
		p.minTime = minTime
	}
	if p.rows == 0 || maxTime > p.maxTime {
		p.maxTime = maxTime
	}
	p.groups = append(p.groups, group)
	p.rows += group.NumRows
	return nil
}

// finish writes the footer, makes the file durable and gives it its name.
func (p *part) finish() (engine.Artifact, error) {
	a := engine.Artifact{
		ArtifactID: uuid.NewString(), RunID: p.opts.RunID, ResultID: p.opts.ResultID, WorkerID: p.opts.WorkerID,
		Kind: KindExecutions, Name: p.name(), RowCount: p.rows,
		MinTime: engine.At(time.Unix(0, p.minTime)), MaxTime: engine.At(time.Unix(0, p.maxTime)),
		SchemaVersion: SchemaVersion, CreatedAt: engine.At(time.Now()),
	}
	footer, err := p.footer(a)
	if err != nil {
		return a, err
	}
	if len(footer) > footerReserve+groupReserve*len(p.groups) {
		if err := p.reserveQuota(len(footer)); err != nil {
			return a, err
		}
	}
	if err := p.write(footer); err != nil {
		return a, err
	}
	if err := p.f.Sync(); err != nil {
		return a, err
	}
	if err := p.f.Close(); err != nil {
		return a, err
	}
	if err := os.Rename(p.path+unfinishedSuffix, p.path); err != nil {
		return a, err
	}
	if err := SyncDir(filepath.Dir(p.path)); err != nil {
		return a, err
	}
	a.SizeBytes, a.SHA256 = p.size, hex.EncodeToString(p.sum.Sum(nil))
	if q := p.opts.Quota; q != nil {
		q.Finished(a)
	}
	return a, nil
}

func (p *part) footer(a engine.Artifact) ([]byte, error) {
	defs := columnDefs()
	orders := make([]format.ColumnOrder, numColumns)
	for i := range orders {
		orders[i] = format.ColumnOrder{Value: &format.TypeDefinedOrder{}}
	}
	meta := format.FileMetaData{
		Version: 1, Schema: schemaElements(&defs), NumRows: p.rows, RowGroups: p.groups,
		CreatedBy: "loadstone", ColumnOrders: orders,
		KeyValueMetadata: []format.KeyValue{
			{Key: metaSchemaVersion, Value: strconv.Itoa(SchemaVersion)},
			{Key: metaArtifactID, Value: a.ArtifactID},
			{Key: metaRunID, Value: a.RunID},
			{Key: metaTestID, Value: a.ResultID},
			{Key: metaWorkerID, Value: a.WorkerID},
			{Key: metaMinTime, Value: strconv.FormatInt(p.minTime, 10)},
			{Key: metaMaxTime, Value: strconv.FormatInt(p.maxTime, 10)},
			{Key: metaCreatedAt, Value: a.CreatedAt.Format(time.RFC3339Nano)},
			{Key: metaOpenLoop, Value: strconv.FormatBool(p.opts.OpenLoop)},
		},
	}
	b, err := thrift.Marshal(&thrift.CompactProtocol{}, &meta)
	if err != nil {
		return nil, fmt.Errorf("encoding footer: %w", err)
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(b)))
	return append(b, magic...), nil
}

// abandon closes and removes the unfinished file, which also gives its space back.
func (p *part) abandon() {
	_ = p.f.Close() // the file is thrown away
	_ = os.Remove(p.path + unfinishedSuffix)
	p.releaseQuota()
}

// releaseQuota tells the quota that nothing of the part is on the disk.
func (p *part) releaseQuota() {
	if q := p.opts.Quota; q != nil {
		q.Abandoned(p.name())
	}
}

// SyncDir makes the names in a folder durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if closeErr := d.Close(); err == nil {
		err = closeErr
	}
	return err
}

// DiskError turns a failed write below dir into the error a user sees. It says
// what to do when the disk, or a quota, is full.
func DiskError(dir string, err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return &engine.Error{Code: engine.CodeUnavailable,
			Message: fmt.Sprintf("The disk is full: executions can no longer be recorded in %s.", dir),
			Hint: "Free space on that file system, delete old runs, or put the data directory on a larger disk, then run " +
				"again.",
			Cause: fmt.Errorf("recording executions: %w", err)}
	}
	return &engine.Error{Code: engine.CodeInternal,
		Message: fmt.Sprintf("Executions cannot be recorded in %s.", dir),
		Hint:    "Check that the folder exists, that it is writable, and that its disk is healthy.",
		Cause:   fmt.Errorf("recording executions: %w", err)}
}
