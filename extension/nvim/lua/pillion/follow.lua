-- Shows with signs what a turn has changed, and lets the person keep or undo each hunk. In follow mode edits are
-- written immediately and reviewed here.
local compat = require("pillion.compat")
local config = require("pillion.config")
local log = require("pillion.log")
local paths = require("pillion.paths")
local process = require("pillion.process")

local M = {}

local ns = vim.api.nvim_create_namespace("pillion_follow")

---@class pillion.TouchedHunk
---@field id string
---@field first integer line, from 1
---@field count integer lines now
---@field members {changeSet: string, hunk: string}[]
---@field state string
---@field mark? integer

---@class pillion.Touched
---@field path string
---@field kind string
---@field hunks pillion.TouchedHunk[]
---@field line? integer
---@field buf? integer

---@type table<string, pillion.Touched[]> by session
M.touched = {}

---@param session pillion.Session
---@param change pillion.ChangeInfo
function M.changed(session, change)
  if change.state ~= "applied" then
    return
  end
  session.touched = true
  require("pillion.session").check_disk()
  if config.options.follow and session.view and session.view:focused() and change.files[1] then
    local f = change.files[1]
    local path, win = paths.from_uri(f.newUri or f.uri), paths.editor_window(true)
    if win and f.kind ~= "delete" and paths.exists(path) then
      local buf = paths.load(path)
      vim.api.nvim_win_set_buf(win, buf)
      local line = f.hunks[1] and math.max(f.hunks[1].newStart, 1) or 1
      pcall(vim.api.nvim_win_set_cursor, win, { math.min(line, vim.api.nvim_buf_line_count(buf)), 0 })
    end
  end
end

local function clear(list)
  for _, f in ipairs(list or {}) do
    if f.buf and vim.api.nvim_buf_is_valid(f.buf) then
      vim.api.nvim_buf_clear_namespace(f.buf, ns, 0, -1)
    end
  end
end

local function mark(file)
  local buf = paths.buffer(file.path)
  if not buf or not compat.loaded(buf) then
    return
  end
  file.buf = buf
  local count = vim.api.nvim_buf_line_count(buf)
  for _, h in ipairs(file.hunks) do
    if h.state == "open" then
      local row = math.max(0, math.min(h.first - 1, count - 1))
      for i = 0, math.max(h.count, 1) - 1 do
        if row + i < count then
          local id = vim.api.nvim_buf_set_extmark(buf, ns, row + i, 0, {
            sign_text = h.count == 0 and "_" or "▎",
            sign_hl_group = h.count == 0 and "PillionDeleteSign" or "PillionKeepSign",
          })
          h.mark = h.mark or id
        end
      end
    end
  end
end

local function show(session, list)
  clear(M.touched[session.id])
  M.touched[session.id] = list
  require("pillion.highlights").define()
  for _, f in ipairs(list) do
    f.line = f.hunks[1] and f.hunks[1].first or 1
    mark(f)
  end
  vim.api.nvim_create_autocmd("BufReadPost", {
    group = vim.api.nvim_create_augroup("pillion_follow", { clear = true }),
    callback = function(args)
      for _, touched in pairs(M.touched) do
        for _, f in ipairs(touched) do
          if paths.buffer(f.path) == args.buf then
            for _, h in ipairs(f.hunks) do
              h.mark = nil
            end
            mark(f)
          end
        end
      end
    end,
  })
end

local function from_turn(r)
  local out = {}
  for _, f in ipairs(r.files) do
    local hunks = {}
    for _, h in ipairs(f.hunks) do
      hunks[#hunks + 1] = { id = h.id, first = math.max(h.newStart, 1), count = h.newLines, members = h.members, state = h.state }
    end
    out[#out + 1] = { path = paths.from_uri(f.newUri or f.uri), kind = f.kind, hunks = hunks }
  end
  return out
end

-- Uses the list of change sets, for a sidecar without turns: for each file the newest applied set.
local function from_list(r)
  local out, seen = {}, {}
  for i = #r.changes, 1, -1 do
    local c = r.changes[i]
    if c.state == "applied" and not c.undoes then
      local gone = {}
      for _, id in ipairs(c.undone or {}) do
        gone[id] = "undone"
      end
      for _, id in ipairs(c.kept or {}) do
        gone[id] = "kept"
      end
      for _, f in ipairs(c.files) do
        local path = paths.from_uri(f.newUri or f.uri)
        if not seen[path] then
          seen[path] = true
          local hunks = {}
          for _, h in ipairs(f.hunks) do
            hunks[#hunks + 1] = { id = h.id, first = math.max(h.newStart, 1), count = h.newLines, members = { { changeSet = c.id, hunk = h.id } }, state = gone[h.id] or "open" }
          end
          table.insert(out, 1, { path = path, kind = f.kind, hunks = hunks })
        end
      end
    end
  end
  return out
end

-- Requests what the last turn changed and shows it.
---@param session pillion.Session
---@param callback? fun(list: pillion.Touched[])
function M.refresh(session, callback)
  local turn = process.can("_pillion/change/turn")
  session:call(turn and "_pillion/change/turn" or "_pillion/change/list", {}, function(err, r)
    if err then
      return callback and log.tell("error", err.message)
    end
    local list = turn and from_turn(r) or from_list(r)
    show(session, list)
    if callback then
      callback(list)
    end
  end)
end

---@param session pillion.Session
function M.turn_ended(session)
  if session.touched and config.options.follow then
    M.refresh(session, function(list)
      require("pillion.quickfix").files(list, true)
    end)
  end
  session.touched = false
end

local function open_hunks(list, path)
  local out = {}
  for _, f in ipairs(list or {}) do
    if not path or f.path == path then
      for _, h in ipairs(f.hunks) do
        if h.state == "open" then
          out[#out + 1] = { file = f, hunk = h }
        end
      end
    end
  end
  return out
end

local function row_of(x)
  return x.file.buf and x.hunk.mark and vim.api.nvim_buf_get_extmark_by_id(x.file.buf, ns, x.hunk.mark, {})[1]
end

-- Returns the changed hunk at the cursor, or the nearest one in this buffer.
---@param session pillion.Session
---@return {file: pillion.Touched, hunk: pillion.TouchedHunk}?
function M.here(session)
  local buf, cursor = vim.api.nvim_get_current_buf(), vim.api.nvim_win_get_cursor(0)[1] - 1
  local best, least
  for _, x in ipairs(open_hunks(M.touched[session.id])) do
    local row = x.file.buf == buf and row_of(x)
    if row then
      local d = cursor < row and row - cursor or math.max(0, cursor - row - math.max(x.hunk.count - 1, 0))
      if not least or d < least then
        best, least = x, d
      end
    end
  end
  return best
end

-- Goes to the next or previous changed hunk of this buffer.
---@param session pillion.Session
---@param direction integer
---@return boolean
function M.step(session, direction)
  local buf, cursor = vim.api.nvim_get_current_buf(), vim.api.nvim_win_get_cursor(0)[1] - 1
  local rows = {}
  for _, x in ipairs(open_hunks(M.touched[session.id])) do
    local row = x.file.buf == buf and row_of(x)
    if row then
      rows[#rows + 1] = row
    end
  end
  if #rows == 0 then
    return false
  end
  table.sort(rows)
  local target = direction > 0 and rows[1] or rows[#rows]
  for i = direction > 0 and 1 or #rows, direction > 0 and #rows or 1, direction do
    if (rows[i] - cursor) * direction > 0 then
      target = rows[i]
      break
    end
  end
  vim.api.nvim_win_set_cursor(0, { target + 1, 0 })
  return true
end

-- Keeps or undoes hunks.
---@param session pillion.Session
---@param verb "keep"|"undo"
---@param what "hunk"|"file"|"all"
function M.settle(session, verb, what)
  local list
  if what == "hunk" then
    local x = M.here(session)
    list = x and { x } or {}
  else
    list = open_hunks(M.touched[session.id], what == "file" and vim.api.nvim_buf_get_name(0) or nil)
  end
  if #list == 0 then
    return log.tell("info", "there is no changed hunk here; :Pillion changes shows what the last turn changed")
  end
  local sets, order = {}, {}
  for _, x in ipairs(list) do
    for _, m in ipairs(x.hunk.members) do
      if not sets[m.changeSet] then
        sets[m.changeSet] = {}
        table.insert(order, 1, m.changeSet) -- newest first, because it was applied after the others
      end
      table.insert(sets[m.changeSet], m.hunk)
    end
  end
  local function next_set(i)
    local id = order[i]
    if not id then
      session:note("info", ("%s %d hunk%s."):format(verb == "keep" and "Kept" or "Took back", #list, #list == 1 and "" or "s"))
      require("pillion.session").check_disk()
      return M.refresh(session)
    end
    session:call("_pillion/change/" .. verb, { changeSet = id, hunks = sets[id] }, function(err)
      if err then
        M.refresh(session)
        return log.tell("error", err.message)
      end
      next_set(i + 1)
    end)
  end
  next_set(1)
end

return M
