package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
)

// sessionHelp is what \? shows.
const sessionHelp = `A statement ends with a semicolon. Tab completes, the arrow keys bring statements back.

  \d           the tables of the results       \d NAME   the columns of a table
  \watch [S]   the last statement again and again, every S seconds (2), until Ctrl+C
  \?           this                            \q        ends, as Ctrl+D does

Ctrl+C gives a line up, or ends the statement that is being carried out.
SHOW QUERIES, SOURCES, SINKS and WORKERS show streams; a SELECT … INTO a sink is a continuous query.
`

// listColumns are the columns of a table; its name is put into a text.
const listColumns = `SELECT table_schema, column_name, data_type FROM information_schema.columns
	WHERE table_schema IN ('tables', 'rollup') AND table_name = '%s' ORDER BY 1 DESC, ordinal_position`

// SQLSession is a shell that a person writes to, on a terminal.
type SQLSession struct {
	SQLShell
	Do APICall
	// TableHistory is the file of statements; "" keeps none.
	History string

	last string
}

// Run talks until \q or Ctrl+D. The terminal is as it was afterwards.
func (s *SQLSession) Run(ctx context.Context, in *os.File, out io.Writer) error {
	fd := int(in.Fd())
	was, err := term.MakeRaw(fd)
	if err != nil {
		return fmt.Errorf("taking over the terminal: %w", err)
	}
	defer func() { _ = term.Restore(fd, was) }()
	typed := readKeys(in)
	t := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{typed, out}, "")
	memory := openHistory(s.History)
	t.History = memory
	s.Out, s.Err = t, t
	var known completer
	go known.load(ctx, s.Do)
	t.AutoCompleteCallback = func(line string, at int, key rune) (string, int, bool) {
		if key != '\t' {
			return "", 0, false
		}
		word, common, fit := known.complete(line, at)
		if len(fit) == 1 && !strings.HasSuffix(common, "(") {
			common += " "
		}
		if len(common) > len(word) {
			begin := line[:at-len(word)] + common
			return begin + line[at:], len(begin), true
		}
		if len(fit) > 1 {
			_, _ = fmt.Fprintln(t, terminal.StripControls(strings.Join(fit[:min(len(fit), 40)], "  ")))
		}
		return line, at, true
	}
	var text string
	for {
		if width, height, err := term.GetSize(fd); err == nil && width > 0 {
			_ = t.SetSize(width, height)
		}
		if t.SetPrompt("loadstone=> "); text != "" {
			t.SetPrompt("        -> ")
		}
		line, err := t.ReadLine()
		switch {
		case errors.Is(err, io.EOF):
			_, _ = fmt.Fprintln(t)
			return nil
		case err != nil:
			return fmt.Errorf("reading statements: %w", err)
		case typed.gaveUp():
			text = ""
			continue
		}
		if text == "" && strings.HasPrefix(strings.TrimSpace(line), `\`) {
			if strings.TrimSpace(line) == `\q` {
				return nil
			}
			s.command(ctx, typed, strings.Fields(line))
			continue
		}
		if text += line + "\n"; strings.TrimSpace(text) == "" {
			text = ""
		}
		if !statementComplete(text) {
			continue
		}
		memory.remember(text)
		s.last, text = text, ""
		s.interruptible(ctx, typed, func(ctx context.Context) error { return s.Execute(ctx, s.last) })
		if isStreamStatement(s.last) {
			go known.load(ctx, s.Do)
		}
	}
}

// command carries out what begins with a backslash.
func (s *SQLSession) command(ctx context.Context, typed *keyReader, words []string) {
	say := func(text string) { _, _ = fmt.Fprintln(s.Err, terminal.StripControls(text)) }
	switch name, args := words[0], words[1:]; {
	case name == `\?`:
		_, _ = io.WriteString(s.Out, sessionHelp)
	case name == `\d` && len(args) == 0:
		s.interruptible(ctx, typed, func(ctx context.Context) error { return s.Execute(ctx, listTables) })
	case name == `\d` && len(args) == 1:
		table := strings.ReplaceAll(strings.TrimSuffix(args[0], ";"), "'", "''")
		s.interruptible(ctx, typed, func(ctx context.Context) error {
			return s.Execute(ctx, fmt.Sprintf(listColumns, table))
		})
	case name == `\watch` && len(args) <= 1:
		every := 2.0
		if len(args) == 1 {
			var err error
			if every, err = strconv.ParseFloat(args[0], 64); err != nil || !(every >= 0.1 && every <= 3600) {
				say(`\watch takes seconds, from 0.1 to 3600`)
				return
			}
		}
		if s.last == "" {
			say(`there is no statement to watch: carry one out first`)
			return
		}
		s.interruptible(ctx, typed, func(ctx context.Context) error {
			return s.watch(ctx, time.Duration(every*float64(time.Second)))
		})
	default:
		say(`there is no command ` + strings.Join(words, " ") + `: \? shows all`)
	}
}

// watch carries the last statement out again and again. An error ends it.
func (s *SQLSession) watch(ctx context.Context, every time.Duration) error {
	for {
		_, _ = fmt.Fprintln(s.Out, time.Now().UTC().Format(time.RFC3339)+", Ctrl+C ends")
		if err := s.Execute(ctx, s.last); err != nil {
			return err
		}
		select {
		case <-time.After(every):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// interruptible does what Ctrl+C ends, and says what went wrong.
func (s *SQLSession) interruptible(ctx context.Context, typed *keyReader, do func(context.Context) error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	typed.setInterrupt(cancel)
	defer typed.setInterrupt(nil)
	err := do(ctx)
	switch {
	case ctx.Err() != nil:
		_, _ = fmt.Fprintln(s.Err, "Cancelled.")
	case err != nil:
		for line := range strings.Lines(engine.AsError(err).Error()) {
			_, _ = fmt.Fprintln(s.Err, terminal.StripControls(strings.TrimRight(line, "\n")))
		}
	}
}
