package schedule

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/loadstone-db/loadstone/engine"
)

// TestTimesAcrossClockChanges has what the clocks do in spring and in autumn, and zones that do other things.
func TestTimesAcrossClockChanges(t *testing.T) {
	for _, c := range []struct {
		name, cron, zone, after string
		want                    []string // in UTC
	}{
		{"skipped in spring", "30 2 * * *", "Europe/Berlin", "2026-03-28T12:00Z",
			[]string{"2026-03-29T01:00Z", "2026-03-30T00:30Z"}},
		{"skipped twice comes once", "0,30 2 * * *", "Europe/Berlin", "2026-03-29T00:00Z",
			[]string{"2026-03-29T01:00Z", "2026-03-30T00:00Z"}},
		{"repeated in autumn", "30 2 * * *", "Europe/Berlin", "2026-10-24T12:00Z",
			[]string{"2026-10-25T00:30Z", "2026-10-26T01:30Z"}},
		{"after the first of the repeated", "30 2 * * *", "Europe/Berlin", "2026-10-25T00:45Z",
			[]string{"2026-10-26T01:30Z"}},
		{"every hour in spring", "0 * * * *", "Europe/Berlin", "2026-03-29T00:30Z",
			[]string{"2026-03-29T01:00Z", "2026-03-29T02:00Z"}},
		{"every hour in autumn", "30 * * * *", "Europe/Berlin", "2026-10-25T00:00Z",
			[]string{"2026-10-25T00:30Z", "2026-10-25T01:30Z", "2026-10-25T02:30Z"}},
		{"every second hour in spring", "0 */2 * * *", "Europe/Berlin", "2026-03-29T00:30Z",
			[]string{"2026-03-29T01:00Z", "2026-03-29T02:00Z"}},
		{"half an hour", "15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00Z",
			[]string{"2026-10-03T15:30Z", "2026-10-04T15:15Z"}},
		{"a day that there was not", "0 9 * * *", "Pacific/Apia", "2011-12-29T12:00Z",
			[]string{"2011-12-29T19:00Z", "2011-12-30T10:00Z", "2011-12-30T19:00Z"}},
		{"midnight is skipped", "@daily", "America/Sao_Paulo", "2018-11-03T12:00Z",
			[]string{"2018-11-04T03:00Z", "2018-11-05T02:00Z"}},
		{"every quarter across midnight", "*/15 * 2 1 *", "UTC", "2026-01-01T00:00Z",
			[]string{"2026-01-02T00:00Z", "2026-01-02T00:15Z"}},
		{"either day", "0 0 13 * fri", "UTC", "2026-11-01T00:00Z",
			[]string{"2026-11-06T00:00Z", "2026-11-13T00:00Z", "2026-11-20T00:00Z"}},
		{"day of the week alone", "0 0 * * fri", "UTC", "2026-11-01T00:00Z", []string{"2026-11-06T00:00Z"}},
		{"a step of days is no day", "0 0 */2 * fri", "UTC", "2026-11-01T00:00Z", []string{"2026-11-13T00:00Z"}},
		{"Sunday is 0 and 7", "0 0 * * 7", "UTC", "2026-11-02T00:00Z", []string{"2026-11-08T00:00Z"}},
		{"a range to Sunday", "0 0 * * 6-7", "UTC", "2026-11-02T00:00Z", []string{"2026-11-07T00:00Z",
			"2026-11-08T00:00Z", "2026-11-14T00:00Z"}},
		{"leap day", "0 0 29 2 *", "UTC", "2096-03-01T00:00Z", []string{"2104-02-29T00:00Z"}},
		{"a name", "@weekly", "UTC", "2026-11-02T00:00Z", []string{"2026-11-08T00:00Z"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, err := Parse(c.cron, c.zone)
			if err != nil {
				t.Fatal(err)
			}
			at, err := time.Parse("2006-01-02T15:04Z", c.after)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range c.want {
				at = e.Next(at)
				if got := at.UTC().Format("2006-01-02T15:04Z"); got != want {
					t.Fatalf("%s instead of %s", got, want)
				}
			}
		})
	}
}

func TestExpressionsThatCannotBeUsed(t *testing.T) {
	for cron, says := range map[string]string{
		"":                    "0 fields",
		"* * * *":             "4 fields",
		"0 0 2 * * *":         "6 fields",
		"60 * * * *":          "minute",
		"* 24 * * *":          "hour",
		"* * 0 * *":           "day of the month",
		"* * * 13 *":          "month",
		"* * * foo *":         "or a name such as feb",
		"* * * * 8":           "day of the week",
		"*/0 * * * *":         "step",
		"5-1 * * * *":         "smaller",
		"1,,2 * * * *":        "minute",
		"+1 * * * *":          "minute",
		"0 0 30 2 *":          "no year",
		"0 0 31 4,6,9,11 *":   "no year",
		"@reboot":             "@hourly",
		"@every 5m":           "@hourly",
		"CRON_TZ=UTC 0 0 * *": "time_zone",
		"0 0 L * *":           "day of the month",
		"0 0 * * 5#2":         "day of the week",
	} {
		_, err := Parse(cron, "UTC")
		if !engine.HasCode(err, engine.CodeInvalid) {
			t.Errorf("%q: %v", cron, err)
			continue
		}
		f := engine.AsError(err).Fields[0]
		if f.Field != "cron" || f.Hint == "" || !strings.Contains(f.Message+f.Hint, says) {
			t.Errorf("%q: %q %q does not say %q", cron, f.Message, f.Hint, says)
		}
	}
	for _, zone := range []string{"Local", "local", "Mars/Olympus", "../etc/passwd"} {
		if _, err := Parse("@daily", zone); !engine.HasCode(err, engine.CodeInvalid) ||
			engine.AsError(err).Fields[0].Field != "time_zone" {
			t.Errorf("%s: %v", zone, err)
		}
	}
}

var zones = []string{"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/St_Johns",
	"Asia/Kathmandu", "Pacific/Apia", "America/Sao_Paulo", "Africa/Casablanca", "Asia/Tehran"}

// anExpression draws one with the values that its fields stand for.
func anExpression(t *rapid.T, everyHour bool) (e Expression, minutes, hours []int) {
	list := func(label string, most int) ([]int, string) {
		values := rapid.SliceOfNDistinct(rapid.IntRange(0, most), 1, 4, rapid.ID[int]).Draw(t, label)
		slices.Sort(values)
		return values, strings.ReplaceAll(strings.Trim(fmt.Sprint(values), "[]"), " ", ",")
	}
	minutes, minuteText := list("minutes", 59)
	hours, hourText := list("hours", 23)
	if everyHour {
		hourText = "*"
	}
	days := rapid.SampledFrom([]string{"*", "1-7", "13", "*/2"}).Draw(t, "days")
	weekdays := rapid.SampledFrom([]string{"*", "sun", "mon-fri", "0,6"}).Draw(t, "weekdays")
	e, err := Parse(fmt.Sprintf("%s %s %s * %s", minuteText, hourText, days, weekdays),
		rapid.SampledFrom(zones).Draw(t, "zone"))
	if err != nil {
		t.Fatal(err)
	}
	return e, minutes, hours
}

// aMoment draws one, in most cases a day and a half before the clocks of a zone move.
func aMoment(t *rapid.T, zone *time.Location) time.Time {
	at := time.Unix(rapid.Int64Range(time.Date(2010, 1, 1, 0, 0, 0, 0, time.UTC).Unix(),
		time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC).Unix()).Draw(t, "moment"), 0)
	if _, moves := at.In(zone).ZoneBounds(); !moves.IsZero() && rapid.IntRange(0, 3).Draw(t, "far") > 0 {
		at = moves.Add(-36 * time.Hour)
	}
	return at
}

// TestEachTimeOfDayComesOnceADay walks four days: of an expression that names hours, each date that it has
// gets each of its times once, at the moment that the wall shows it first, or at the moment at which the clocks skip it.
func TestEachTimeOfDayComesOnceADay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e, minutes, hours := anExpression(t, false)
		begin := aMoment(t, e.zone)
		got := map[int64]bool{}
		end := begin.Add(4 * 24 * time.Hour)
		last := begin
		for at := e.Next(begin); at.Before(end); at = e.Next(at) {
			if !at.After(last) || at.Second() != 0 {
				t.Fatalf("%v comes after %v", at, last)
			}
			got[at.Unix()], last = true, at
		}
		// The moments of every minute, as the wall shows them, found by walking.
		shown := map[string]int64{}
		for at := begin.Truncate(time.Minute).Add(-36 * time.Hour); at.Before(end); at = at.Add(time.Minute) {
			key := at.In(e.zone).Format("2006-01-02 15:04")
			if _, ok := shown[key]; !ok {
				shown[key] = at.Unix()
			}
		}
		want := map[int64]bool{}
		for date := begin.In(e.zone).AddDate(0, 0, -1); date.Before(end.Add(24 * time.Hour)); date = date.AddDate(0, 0, 1) {
			y, m, d := date.Date()
			if !e.on(y, m, d) {
				continue
			}
			for _, h := range hours {
				for _, min := range minutes {
					wall := time.Date(y, m, d, h, min, 0, 0, time.UTC)
					at, ok := shown[wall.Format("2006-01-02 15:04")]
					for !ok && wall.Before(end.Add(48*time.Hour)) { // skipped: the first minute that there is
						wall = wall.Add(time.Minute)
						at, ok = shown[wall.Format("2006-01-02 15:04")]
					}
					if ok && at > begin.Unix() && at < end.Unix() {
						want[at] = true
					}
				}
			}
		}
		for at := range want {
			if !got[at] {
				t.Fatalf("%v is missing", time.Unix(at, 0).In(e.zone))
			}
		}
		for at := range got {
			if !want[at] {
				t.Fatalf("%v is too much", time.Unix(at, 0).In(e.zone))
			}
		}
	})
}

// TestEveryHourFollowsTheWall: of an expression for every hour, the times are exactly the minutes that the wall shows.
func TestEveryHourFollowsTheWall(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e, minutes, _ := anExpression(t, true)
		begin := aMoment(t, e.zone)
		at := e.Next(begin)
		if at.IsZero() || !at.After(begin) {
			t.Fatalf("%v after %v", at, begin)
		}
		for walk := begin.Truncate(time.Minute).Add(time.Minute); !walk.After(at); walk = walk.Add(time.Minute) {
			local := walk.In(e.zone)
			y, m, d := local.Date()
			if has := e.on(y, m, d) && slices.Contains(minutes, local.Minute()); has != walk.Equal(at) {
				t.Fatalf("%v: has it %v, and the next after %v is %v", local, has, begin, at)
			}
		}
	})
}

// FuzzParse: no text is read as something that has no times, and none panics.
func FuzzParse(f *testing.F) {
	f.Add("*/5 1-3 * jan,feb mon", "Europe/Berlin")
	f.Add("@daily", "")
	f.Fuzz(func(t *testing.T, cron, zone string) {
		e, err := Parse(cron, zone)
		if err == nil && e.Next(time.Unix(1_700_000_000, 0)).IsZero() {
			t.Errorf("%q in %q has no time", cron, zone)
		}
	})
}
