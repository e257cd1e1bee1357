# The body of the comment: marker, report, and where it is from, in at most the 65536 characters that GitHub takes, counted as bytes.
# The report is Markdown in blocks with an empty line between them. The first blocks that fit are kept whole; of a table that does
# not fit, the first rows.
def bytes_max: 65536;

# The first of these texts that fit, each with the separator before it.
def fitting(separator; room):
  reduce .[] as $next ({text: "", full: false};
    (if .text == "" then $next else .text + separator + $next end) as $longer
    | if .full or ($longer | utf8bytelength) > room then .full = true else .text = $longer end);

def cut(room):
  split("\n\n") as $blocks
  | ($blocks | fitting("\n\n"; room)) as $whole
  | if $whole.full | not then $whole.text
    else
      ($blocks[1] // "" | split("\n") | fitting("\n"; room - ($blocks[0] | utf8bytelength) - 20).text) as $rows
      | if ($whole.text | contains("</table>")) or ($rows | startswith("<table>") | not) then $whole.text
        else $blocks[0] + "\n\n" + $rows + "\n</table>" end
    end;

($marker + "\n") as $head
| "<sub>\($key | @html)\(if $commit == "" then "" else " at \($commit[:12])" end), <a href=\"\($url | @html)\">the job's run</a></sub>\n" as $foot
| "\n\nThis is not the whole report: the summary of the job has the rest.\n\n" as $note
| (bytes_max - ($head + $foot + $note | utf8bytelength)) as $room
| ($report | rtrimstr("\n")) as $report
| {body: ($head + (if ($report | utf8bytelength) <= $room then $report + "\n\n" else ($report | cut($room)) + $note end) + $foot)}
