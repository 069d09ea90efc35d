package schedule

import (
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // a machine without zone files knows every zone

	"github.com/loadstone-db/loadstone/engine"
)

// Expression is a cron expression in a time zone. The zero value has no times; Parse makes it.
//
// Of an expression that names hours, each time of day comes once a day: one that the clocks skip in spring comes when
// they have moved, and one that they repeat in autumn comes the first time. Of an expression for every hour, the times
// are those at which a clock on the wall shows it: none is moved, and the repeated hour has them twice.
type Expression struct {
	minutes, hours, days, months, weekdays uint64 // bit n stands for n
	// eitherDay: a day of the month and a day of the week are named, and one of them is enough.
	eitherDay bool
	zone      *time.Location
}

// field is one of the five fields of an expression.
type field struct {
	name     string
	min, max int
	names    []string // of min, min+1, …
}

var fields = [5]field{
	{name: "minute", max: 59},
	{name: "hour", max: 23},
	{name: "day of the month", min: 1, max: 31},
	{name: "month", min: 1, max: 12, names: []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct",
		"nov", "dec"}},
	{name: "day of the week", max: 7, names: []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
}

// shorthands are names for whole expressions.
var shorthands = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
	"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}

const (
	allHours = 1<<24 - 1
	// searchDays bounds how far ahead Next looks. February 29 is at most eight years away.
	searchDays = 9 * 366
	cronHint   = "Write minute, hour, day of the month, month, day of the week, such as \"30 2 * * mon-fri\", or @daily."
	zoneHint   = "Write a name of the IANA database, such as Europe/Berlin, or UTC."
)

// Parse reads an expression and the name of a time zone; no name is UTC. Its errors are for users and name the fields
// "cron" and "time_zone".
func Parse(cron, zone string) (Expression, error) {
	e := Expression{}
	var err error
	if e.zone, err = ParseZone(zone); err != nil {
		return Expression{}, err
	}
	text := strings.ToLower(strings.TrimSpace(cron))
	if strings.HasPrefix(text, "@") {
		full, ok := shorthands[text]
		if !ok {
			return Expression{}, engine.InvalidField("cron", fmt.Sprintf("has the unknown name %q", cron),
				"Known names are @hourly, @daily, @midnight, @weekly, @monthly, @yearly and @annually.")
		}
		text = full
	}
	parts := strings.Fields(text)
	if len(parts) > 0 && strings.Contains(parts[0], "tz=") {
		return Expression{}, engine.InvalidField("cron", "names a time zone", "Write the zone in time_zone.")
	}
	if len(parts) != len(fields) {
		return Expression{}, engine.InvalidField("cron", fmt.Sprintf("has %d fields instead of 5", len(parts)), cronHint)
	}
	for i, into := range []*uint64{&e.minutes, &e.hours, &e.days, &e.months, &e.weekdays} {
		if *into, err = fields[i].parse(parts[i]); err != nil {
			return Expression{}, err
		}
	}
	e.weekdays = (e.weekdays | e.weekdays>>7) & (1<<7 - 1) // 7 is Sunday, too
	e.eitherDay = !strings.HasPrefix(parts[2], "*") && !strings.HasPrefix(parts[4], "*")
	if e.Next(time.Date(2024, time.January, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return Expression{}, engine.InvalidField("cron", "names a date that no year has", cronHint)
	}
	return e, nil
}

// ParseZone returns the zone of a name; no name is UTC.
func ParseZone(name string) (*time.Location, error) {
	if name == "" {
		return time.UTC, nil
	}
	// "Local" would be another zone on another server.
	zone, err := time.LoadLocation(name)
	if err != nil || strings.EqualFold(name, "local") {
		return nil, engine.InvalidField("time_zone", fmt.Sprintf("names the unknown zone %q", name), zoneHint)
	}
	return zone, nil
}

// parse reads a list of ranges with steps: "0", "mon-fri", "*/15", "1-31/2,31".
func (f field) parse(text string) (set uint64, err error) {
	for part := range strings.SplitSeq(text, ",") {
		span, step, stepped := strings.Cut(part, "/")
		by := 1
		if stepped {
			if by, err = strconv.Atoi(step); err != nil || by < 1 || by > f.max {
				return 0, f.invalid(text, "a step is a number from 1 to "+strconv.Itoa(f.max))
			}
		}
		first, last, err := f.span(span, stepped)
		if err != nil {
			return 0, f.invalid(text, err.Error())
		}
		for v := first; v <= last; v += by {
			set |= 1 << v
		}
	}
	return set, nil
}

// span reads "*", a value or a range; a value with a step is a range to the end.
func (f field) span(text string, stepped bool) (first, last int, err error) {
	if text == "*" {
		if f.name == "day of the week" {
			return f.min, 6, nil // Sunday once
		}
		return f.min, f.max, nil
	}
	from, to, ranged := strings.Cut(text, "-")
	if first, err = f.value(from); err != nil {
		return 0, 0, err
	}
	switch {
	case ranged:
		if last, err = f.value(to); err != nil {
			return 0, 0, err
		}
	case stepped:
		last = f.max
	default:
		last = first
	}
	if last < first {
		return 0, 0, errors.New("a range goes from the smaller to the greater value")
	}
	return first, last, nil
}

func (f field) value(text string) (int, error) {
	for i, name := range f.names {
		if text == name {
			return f.min + i, nil
		}
	}
	v, err := strconv.Atoi(text)
	if err != nil || v < f.min || v > f.max || text[0] == '+' || text[0] == '-' {
		names := ""
		if f.names != nil {
			names = ", or a name such as " + f.names[1]
		}
		return 0, fmt.Errorf("a value is a number from %d to %d%s", f.min, f.max, names)
	}
	return v, nil
}

func (f field) invalid(text, why string) error {
	return engine.InvalidField("cron", fmt.Sprintf("has the %s %q: %s", f.name, text, why), cronHint)
}

// everyHour reports whether the expression names no hours.
func (e Expression) everyHour() bool { return e.hours == allHours }

// on reports whether the expression has times on a date.
func (e Expression) on(year int, month time.Month, day int) bool {
	date := time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
	inMonth, inWeek := e.days>>day&1 == 1, e.weekdays>>date.Weekday()&1 == 1
	if e.months>>month&1 == 0 {
		return false
	}
	if e.eitherDay {
		return inMonth || inWeek
	}
	return inMonth && inWeek
}

// Next returns the first time after a moment; the zero time when there is none.
func (e Expression) Next(after time.Time) time.Time {
	if e.zone == nil {
		return time.Time{}
	}
	if e.everyHour() {
		return e.nextInstant(after)
	}
	// The day before, too: where the clocks skip a time at midnight, it comes on the next date.
	y, m, d := after.In(e.zone).Date()
	for i := -1; i < searchDays; i++ {
		year, month, day := time.Date(y, m, d+i, 0, 0, 0, 0, time.UTC).Date()
		if !e.on(year, month, day) {
			continue
		}
		for hours := e.hours; hours != 0; hours &= hours - 1 {
			for minutes := e.minutes; minutes != 0; minutes &= minutes - 1 {
				at := e.instant(year, month, day, bits.TrailingZeros64(hours), bits.TrailingZeros64(minutes))
				if at.After(after) {
					return at
				}
			}
		}
	}
	return time.Time{}
}

// nextInstant is Next of an expression for every hour: it walks through the minutes of the days that it has.
func (e Expression) nextInstant(after time.Time) time.Time {
	at := after.In(e.zone).Truncate(time.Second)
	at = at.Add(time.Duration(60-at.Second()) * time.Second) // offsets of zones that once had seconds count
	for end := after.AddDate(0, 0, searchDays); at.Before(end); {
		year, month, day := at.Date()
		if e.on(year, month, day) {
			if e.minutes>>at.Minute()&1 == 1 {
				return at.UTC()
			}
		} else if next := e.instant(year, month, day+1, 0, 0).In(e.zone); next.After(at) {
			at = next
			continue
		}
		at = at.Add(time.Minute)
	}
	return time.Time{}
}

// instant is the moment at which a clock on the wall shows a time: the first where it does so twice, and where the
// clocks skip it, that at which they move.
func (e Expression) instant(year int, month time.Month, day, hour, minute int) time.Time {
	wall := time.Date(year, month, day, hour, minute, 0, 0, time.UTC)
	guess := time.Date(year, month, day, hour, minute, 0, 0, e.zone)
	start, end := guess.ZoneBounds()
	near := []time.Time{guess}
	if !start.IsZero() {
		near = append(near, start.Add(-time.Second))
	}
	if !end.IsZero() {
		near = append(near, end)
	}
	var first time.Time
	for _, n := range near {
		_, offset := n.Zone()
		at := wall.Add(-time.Duration(offset) * time.Second)
		if _, here := at.In(e.zone).Zone(); here == offset && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	if !first.IsZero() {
		return first
	}
	// The clocks skip it: one of the bounds is where they do.
	if !start.IsZero() && shows(start).After(wall) && !shows(start.Add(-time.Second)).After(wall) {
		return start.UTC()
	}
	return end.UTC()
}

// shows is what a clock on the wall shows, as a time in UTC.
func shows(t time.Time) time.Time {
	_, offset := t.Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}
