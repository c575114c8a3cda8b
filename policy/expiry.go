package policy

import "fmt"

// later adds milliseconds, rounded down to whole seconds, to a time in [TimeForm]. It returns an empty time, which as an expiry
// is in the past, for another form and beyond four-digit years. Package time is not used, because pure packages must not
// import a clock.
func later(now string, ms int64) string {
	var y, mo, d, h, mi, s int64
	n, err := fmt.Sscanf(now, "%4d-%2d-%2dT%2d:%2d:%2dZ", &y, &mo, &d, &h, &mi, &s)
	if err != nil || n != 6 || ms <= 0 || now != stamp(y, mo, d, h*3600+mi*60+s) {
		return ""
	}
	days := daysFrom(y, mo, d)
	if cy, cm, cd := civil(days); cy != y || cm != mo || cd != d || h > 23 || mi > 59 || s > 59 {
		return ""
	}
	seconds := days*86400 + h*3600 + mi*60 + s + ms/1000
	y, mo, d = civil(seconds / 86400)
	if y > 9999 {
		return ""
	}
	return stamp(y, mo, d, seconds%86400)
}

func stamp(y, mo, d, second int64) string {
	return fmt.Sprintf("%04d-%02d-%02dT%02d:%02d:%02dZ", y, mo, d, second/3600, second/60%60, second%60)
}

// daysFrom counts the days from 0000-03-01 of the proleptic Gregorian calendar. Years begin in March, so a leap day ends
// its year.
func daysFrom(y, mo, d int64) int64 {
	if mo <= 2 {
		y--
		mo += 12
	}
	return 365*y + y/4 - y/100 + y/400 + (153*(mo-3)+2)/5 + d - 1
}

// civil returns the date a number of days after 0000-03-01.
func civil(days int64) (y, mo, d int64) {
	const era = 146097 // days in 400 years
	of := days % era
	year := (of - of/1460 + of/36524 - of/(era-1)) / 365
	day := of - (365*year + year/4 - year/100)
	month := (5*day + 2) / 153
	y, mo, d = days/era*400+year, month+3, day-(153*month+2)/5+1
	if mo > 12 {
		y++
		mo -= 12
	}
	return y, mo, d
}
