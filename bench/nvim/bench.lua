-- The numbers that are promised of the Neovim plugin, measured: nvim --headless -u NONE -i NONE -n
--   --cmd 'set rtp^=extension/nvim' -c 'luafile bench/nvim/bench.lua'
-- A pause is the longest time between two ticks of a 1 ms timer while the work goes on: what a person typing would
-- feel. Beside it stands the processor time of that stretch: on a busy machine the rest is others' work. The sidecar's messages come from a file through a real process (cat), so the pipe and the JSON count.
local uv = vim.uv or vim.loop
local root = vim.fn.getcwd()
local out = {}

local values = {}

local function say(name, value, unit, limit)
  out[#out + 1] = ("%-58s %8.1f %s   (promised: %s)"):format(name, value, unit, limit)
  local at_most = tonumber(limit:match("^%d+"))
  -- A line that is set in belongs to the one before it.
  local what = name:gsub("^  ", values[#values] and (values[#values].what:match("^[^:]+") .. ": ") or "")
  values[#values + 1] = { what = what, value = value, unit = unit, limit = at_most or 0 }
end

local function ms(from)
  return (uv.hrtime() - from) / 1e6
end

-- The same in processor time.
local function cpu(from)
  return (os.clock() - from) * 1000
end

-- The longest pause while f works and until done says it is over.
local function pauses(f, done, limit)
  local longest, last, total = 0, nil, uv.hrtime()
  local busiest, clock = 0, os.clock()
  local timer = uv.new_timer()
  timer:start(0, 1, function()
    local now = uv.hrtime()
    if last then
      longest = math.max(longest, (now - last) / 1e6)
    end
    busiest = math.max(busiest, cpu(clock))
    last, clock = now, os.clock()
  end)
  f()
  vim.wait(limit or 60000, done, 1)
  timer:stop()
  timer:close()
  return longest, ms(total), busiest
end

-- 1. require and setup, as a plugin manager does it
vim.loader = vim.loader or {}
local times = {}
for _ = 1, 21 do
  for name in pairs(package.loaded) do
    if name:match("^pillion") then
      package.loaded[name] = nil
    end
  end
  vim.g.loaded_pillion = nil
  local at = uv.hrtime()
  vim.cmd("runtime plugin/pillion.lua")
  require("pillion").setup({ review = { layout = "split" } })
  times[#times + 1] = ms(at)
end
local first = times[1]
table.sort(times)
say("plugin file, require, setup: median of 21", times[11], "ms", "3 ms")
say("  the first, from a cold start", first, "ms", "3 ms")

-- 2. an answer of 20,000 deltas
local session = require("pillion.session")
local process = require("pillion.process")
local rpc = require("pillion.rpc")
require("pillion.config").set({ notify = false, review = { quickfix = true } })
local s = session.create()
s.id, s.state, process.state = "bench", "ready", "ready"
session.by_id.bench = s
require("pillion.chat").open(false)
local file = vim.fn.tempname()
local f = assert(io.open(file, "wb"))
local words = { "The ", "**answer** ", "is `code` ", "in ", "many ", "small ", "pieces.\n", "\n- item ", "\n```lua\nlocal x = 1\n```\n" }
for i = 1, 20000 do
  f:write(vim.json.encode({ jsonrpc = "2.0", method = "session/update", params = { sessionId = "bench", update = { sessionUpdate = "agent_message_chunk", content = { type = "text", text = words[i % #words + 1] } } } }), "\n")
end
f:close()
local r
local longest, total, busiest = pauses(function()
  r = rpc.start({ "cat", file }, { handlers = require("pillion.handlers").table, on_exit = function() end })
end, function()
  local e = s.entries[1]
  local v = s.view
  return r.exited and e and #e.pieces == 20000 and v.placed[e] and v.placed[e].pieces == 20000
end)
say("20,000 deltas: longest pause", longest, "ms", "20 ms")
say("  longest in processor time", busiest, "ms", "20 ms")
say("  all of it on the screen after", total, "ms", "-")

-- 3. a review of 500 hunks
local path = vim.fn.tempname() .. ".lua"
local old, new, hunks = {}, {}, {}
for i = 1, 500 do
  for j = 1, 8 do
    old[#old + 1] = ("local line_%d_%d = %d"):format(i, j, j)
    new[#new + 1] = old[#old]
  end
  old[#old + 1] = ("local changed_%d = 'old'"):format(i)
  new[#new + 1] = ("local changed_%d = 'new'"):format(i)
  hunks[i] = { id = "h" .. i, oldStart = #old, oldLines = 1, newStart = #new, newLines = 1 }
end
local before = table.concat(old, "\n") .. "\n"
local h = assert(io.open(path, "wb"))
h:write(before)
h:close()
vim.cmd("wincmd t | edit " .. path)
local at, clock = uv.hrtime(), os.clock()
require("pillion.approval").permission({
  sessionId = "bench",
  options = { { optionId = "once", name = "Allow", kind = "allow_once" }, { optionId = "reject", name = "Reject", kind = "reject_once" } },
  toolCall = {
    toolCallId = "c",
    title = "Edit",
    content = { { type = "diff", path = path, oldText = before, newText = table.concat(new, "\n") .. "\n" } },
    _meta = { pillion = { changeSet = "cs", files = { { uri = vim.uri_from_fname(path), kind = "edit", hunks = hunks } } } },
  },
}, function() end, 1)
vim.cmd("Pillion review")
vim.cmd("redraw")
say("500 hunks: from the request to the shown proposal", ms(at), "ms", "300 ms")
say("  in processor time", cpu(clock), "ms", "300 ms")
at = uv.hrtime()
vim.cmd("Pillion review next")
vim.cmd("redraw")
say("  to the next hunk", ms(at), "ms", "-")
at = uv.hrtime()
vim.cmd("Pillion accept all")
say("  accepting all", ms(at), "ms", "-")

-- 4. 10 MB of text to the sidecar
local big = vim.fn.tempname()
h = assert(io.open(big, "wb"))
h:write((("0123456789 the quick brown fox jumps over it\n"):rep(233000)))
h:close()
vim.cmd("edit " .. big)
local sink = rpc.start({ "sh", "-c", "wc -c" }, { handlers = {}, on_exit = function() end })
local size = vim.fn.getfsize(big) / 1e6
local buffers = require("pillion.buffers")
local written = 0
local write = sink.write
function sink:write(data)
  written = written + #data
  return write(self, data)
end
longest, total, busiest = pauses(function()
  buffers.enable(sink)
end, function()
  return written > size * 1e6 and not sink.outbox
end)
say(("a buffer of %.1f MB opened: longest pause"):format(size), longest, "ms", "50 ms")
say("  longest in processor time", busiest, "ms", "50 ms")
say("  all of it sent after", total, "ms", "-")
local worst = 0
for i = 1, 50 do
  at = uv.hrtime()
  vim.api.nvim_buf_set_text(0, 100000 + i, 3, 100000 + i, 3, { "x" })
  buffers.flush()
  worst = math.max(worst, ms(at))
end
say("  a key typed in it, told: the worst of 50", worst, "ms", "50 ms")

local v = vim.version and vim.version()
local load = io.open("/proc/loadavg")
io.stdout:write(("Neovim %s, load %s\n"):format(v and ("%d.%d.%d"):format(v.major, v.minor, v.patch) or "?", load and load:read("*l"):match("^%S+") or "?"))
io.stdout:write(table.concat(out, "\n"), "\n")
if os.getenv("PILLION_BENCH_JSON") then
  local file = assert(io.open(os.getenv("PILLION_BENCH_JSON"), "wb"))
  file:write(vim.json.encode({ version = ("Neovim %d.%d"):format(v.major, v.minor), values = values }))
  file:close()
end
vim.fn.jobstop(sink.job)
vim.cmd("qall!")
