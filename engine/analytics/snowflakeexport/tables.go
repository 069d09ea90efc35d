// This part makes the tables of a Snowflake account into which runs are taken, and tells them from what somebody
// else has there under the same name.
//
// Each has a comment that begins with Mark and a version. What carries it and has the columns is Loadstone's; so is
// what lacks the mark but has these columns and no others, as earlier versions made it, and it gets the mark.
// Everything else is somebody else's: it is not written to, changed or dropped, and Made says what to do about it.

package snowflakeexport
