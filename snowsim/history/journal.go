package history

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"
)

const (
	// journalLimit bounds each of the two files of a journal, in bytes: the older file is dropped as a whole.
	journalLimit = 256 << 20
	journalFlush = 200 * time.Millisecond
)

// Journal writes executions to a file, so that a history outlives its process: one
// line of JSON each. What the last fifth of a second brought is lost with a process that is killed.
type Journal struct {
	path string

	mu      sync.Mutex
	file    *os.File
	out     *bufio.Writer
	written int64
	failed  error
	timer   *time.Timer
	closed  bool
}

// OpenJournal loads a file into a store and appends to it.
func OpenJournal(path string, into *Store) (*Journal, error) {
	for _, name := range []string{path + ".1", path} {
		if err := replay(name, into); err != nil {
			return nil, fmt.Errorf("reading the history %s: %w", name, err)
		}
	}
	j := &Journal{path: path}
	if err := j.open(); err != nil {
		return nil, err
	}
	j.mu.Lock() // flush, which reads the timer, runs in a goroutine of its own
	defer j.mu.Unlock()
	j.timer = time.AfterFunc(journalFlush, j.flush)
	return j, nil
}

// replay adds the lines of a file. A line that was cut off ends it.
func replay(name string, into *Store) error {
	file, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	lines := json.NewDecoder(bufio.NewReaderSize(file, 1<<20))
	for {
		var r Record
		if err := lines.Decode(&r); err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, new(*json.SyntaxError)) {
				return nil
			}
			return err
		}
		into.Add(&r)
	}
}

func (j *Journal) open() error {
	file, err := os.OpenFile(j.path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("opening the history: %w", err)
	}
	end, err := completeLength(file)
	if err == nil {
		err = file.Truncate(end)
	}
	if err == nil {
		_, err = file.Seek(end, io.SeekStart)
	}
	if err != nil {
		_ = file.Close()
		return fmt.Errorf("opening the history: %w", err)
	}
	j.file, j.out, j.written = file, bufio.NewWriterSize(file, 1<<16), end
	return nil
}

// wholeLines is the length of a file without a last line that was cut off.
func completeLength(file *os.File) (int64, error) {
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, err
	}
	var last [1]byte
	for at := size; at > 0; at-- {
		if _, err := file.ReadAt(last[:], at-1); err != nil {
			return 0, err
		}
		if last[0] == '\n' {
			return at, nil
		}
	}
	return 0, nil
}

// Add appends an execution. It never waits for the disk longer than a write to a file takes.
func (j *Journal) Add(r *Record) {
	line, err := json.Marshal(r)
	if err != nil {
		return // a record holds nothing that cannot be written
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed || j.failed != nil {
		return
	}
	if j.written > journalLimit {
		if j.failed = j.rotate(); j.failed != nil {
			return
		}
	}
	j.written += int64(len(line)) + 1
	if _, j.failed = j.out.Write(append(line, '\n')); j.failed != nil {
		return
	}
}

func (j *Journal) rotate() error {
	if err := errors.Join(j.out.Flush(), j.file.Close(), os.Rename(j.path, j.path+".1")); err != nil {
		return fmt.Errorf("rotating the history: %w", err)
	}
	return j.open()
}

func (j *Journal) flush() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return
	}
	if j.failed == nil {
		j.failed = j.out.Flush()
	}
	j.timer.Reset(journalFlush)
}

// Close writes what is left and returns the first thing that went wrong. Closing twice is safe.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return j.failed
	}
	j.closed = true
	j.timer.Stop()
	if j.failed == nil {
		j.failed = j.out.Flush()
	}
	return errors.Join(j.failed, j.file.Close())
}
