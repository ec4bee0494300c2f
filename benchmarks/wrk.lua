-- Requests in turn, each with the contents of a file: wrk -s wrk.lua URL -- FILE ...
-- At the end, one line: requests, seconds, percentiles 50 and 99 of latency in us, errors.

local requests, number = {}, 0

function init(paths)
  for _, path in ipairs(paths) do
    local file = assert(io.open(path, "rb"))
    local headers = { ["Content-Type"] = "application/octet-stream", Host = wrk.host }
    table.insert(requests, wrk.format("POST", nil, headers, file:read("*a")))
    file:close()
  end
end

function request()
  number = number % #requests + 1
  return requests[number]
end

function done(summary, latency)
  local e = summary.errors
  local errors = e.connect + e.read + e.write + e.status + e.timeout
  local seconds = summary.duration / 1e6
  local middle, late = latency:percentile(50), latency:percentile(99)
  print(string.format("found %d %f %f %f %d", summary.requests, seconds, middle, late, errors))
end
