-- The review of a proposal: its files, its hunks, and the decision on each. review_view draws it; this module writes
-- no file.
local approval = require("pillion.approval")
local compat = require("pillion.compat")
local config = require("pillion.config")
local log = require("pillion.log")
local paths = require("pillion.paths")

---@class pillion.ReviewHunk
---@field id string
---@field file pillion.ReviewFile
---@field number integer among all hunks
---@field old_start integer from 1; for an insertion the line before it
---@field new_start integer
---@field old string[] lines
---@field new string[] lines
---@field decision? "accept"|"reject"|"edit"
---@field new_lines? string[] the person's lines, for the decision "edit"
---@field comment? string
---@field effect? pillion.HunkEffect how it changes the problems, while it is undecided
---@field needs? string[] ids of hunks without which it introduces problems
---@field reopened? boolean it was decided, and is undecided again
---@field mark? integer extmark of its place
---@field marks integer[] extmarks that show it

---@class pillion.ReviewFile
---@field path string
---@field new_path? string
---@field kind "edit"|"create"|"delete"|"rename"
---@field hunks pillion.ReviewHunk[]
---@field old_text? string
---@field new_text? string
---@field buf? integer buffer that shows it
---@field mapped? table the mappings of buf before those of the review
---@field side_by_side? boolean a side-by-side pane shows it
---@field gutter? integer columns left of the text when its hunks were drawn

---@class pillion.Review
---@field ask pillion.Ask
---@field session pillion.Session
---@field files pillion.ReviewFile[]
---@field hunks pillion.ReviewHunk[]
---@field diagnostics? table
---@field evidence? pillion.ChangeEvidence
---@field closed boolean
---@field checking? boolean a verdict on the decisions so far was requested
---@field checks? integer number of such requests
---@field shown_at number when it appeared, in milliseconds of review_keys.now
local Review = {}
Review.__index = Review

local M = {
  ---@type pillion.Review[]
  open = {},
}

-- Returns a text's lines without their line ends.
---@param s? string
---@return string[]
local function lines_of(s)
  if not s or s == "" then
    return {}
  end
  local lines = vim.split(s, "\n", { plain = true })
  if lines[#lines] == "" then
    table.remove(lines)
  end
  for i, l in ipairs(lines) do
    if l:sub(-1) == "\r" then
      lines[i] = l:sub(1, -2)
    end
  end
  return lines
end
M.lines_of = lines_of

-- A very large file is sent as excerpts: each changed place is below a line that says where it is.
local function excerpt(s)
  local out, current = {}, nil
  for _, l in ipairs(lines_of(s)) do
    local at = l:match("^… line (%d+) …$")
    if at then
      current = {}
      out[tonumber(at)] = current
    elseif current then
      current[#current + 1] = l
    end
  end
  return out
end

local function slice(lines, first, n)
  return n > 0 and { unpack(lines, first, first + n - 1) } or {}
end

local function read(ask)
  local texts = {}
  for _, c in ipairs(ask.call.content or {}) do
    if c.type == "diff" then
      texts[c.path] = c
    end
  end
  local files, hunks = {}, {}
  for _, f in ipairs(ask.meta.files or {}) do
    local path, new_path = paths.from_uri(f.uri), f.newUri and paths.from_uri(f.newUri)
    local diff = texts[path] or (new_path and texts[new_path]) or {}
    local file = { path = path, new_path = new_path, kind = f.kind, hunks = {}, old_text = diff.oldText, new_text = diff.newText }
    local short = (diff.newText or ""):match("^… line %d+ …\n") or (diff.oldText or ""):match("^… line %d+ …\n")
    local old, new = lines_of(diff.oldText), lines_of(diff.newText)
    if short then
      old, new = excerpt(diff.oldText), excerpt(diff.newText)
      file.old_text, file.new_text = nil, nil
    end
    for _, h in ipairs(f.hunks or {}) do
      local hunk = {
        id = h.id,
        file = file,
        number = #hunks + 1,
        old_start = h.oldStart,
        old = short and (old[h.oldStart] or {}) or slice(old, h.oldStart, h.oldLines),
        new = short and (new[h.oldStart] or {}) or slice(new, h.newStart, h.newLines),
        new_start = h.newStart,
        marks = {},
      }
      if file.kind ~= "rename" or h.oldLines ~= #old or h.newLines ~= #new or diff.oldText ~= diff.newText then
        file.hunks[#file.hunks + 1] = hunk
      else
        hunk.old, hunk.new = {}, {}
        file.hunks[#file.hunks + 1] = hunk
      end
      hunks[#hunks + 1] = hunk
    end
    files[#files + 1] = file
  end
  return files, hunks
end

local function count(n, thing)
  return n .. " " .. thing .. (n == 1 and "" or "s")
end

-- Splits problems into errors and lesser ones. Analysers stay silent about code that does not build, so a change that
-- breaks it would seem to fix all its warnings.
---@param problems pillion.Problem[]
---@return integer errors
---@return integer lesser
local function errors(problems)
  local n = 0
  for _, p in ipairs(problems) do
    n = n + (p.severity == "error" and 1 or 0)
  end
  return n, #problems - n
end

-- Says how the change affects the project's problems, in the sidecar's words.
---@return string
function Review:problems()
  local d = self.diagnostics
  if not d then
    return ""
  elseif d.certainty == "pending" or d.certainty == "unavailable" then
    local words = d.certainty == "pending" and "problems not checked yet" or "problems cannot be checked"
    return d.reason and d.reason ~= "" and words .. ": " .. d.reason or words
  end
  local fixed, fixed_lesser = errors(d.fixed)
  local introduced, introduced_lesser = errors(d.introduced)
  local words = ("fixes %s, introduces %d"):format(count(fixed, "error"), introduced)
  local lesser = {}
  for _, l in ipairs({ { fixed_lesser, "fixed" }, { introduced_lesser, "introduced" } }) do
    if l[1] > 0 then
      lesser[#lesser + 1] = (l[1] == 1 and "1 warning or hint " or l[1] .. " warnings or hints ") .. l[2]
    end
  end
  if #lesser > 0 then
    words = words .. "; " .. table.concat(lesser, ", ")
  end
  if self.checking then
    words = words .. " (checking again)"
  end
  return d.certainty == "partial" and words .. " (checked in part)" or words
end

-- The change in one line: its size, the decisions so far, its verdict.
---@return string
function Review:headline()
  local parts = { count(#self.files, "file") .. ", " .. count(#self.hunks, "hunk") }
  local left, rejected = self:left(), 0
  for _, h in ipairs(self.hunks) do
    rejected = rejected + (h.decision == "reject" and 1 or 0)
  end
  if left > 0 and left < #self.hunks then
    parts[#parts + 1] = ("%d ✓ %d ✗ %d open"):format(#self.hunks - left - rejected, rejected, left)
  end
  local problems = self:problems()
  if problems ~= "" then
    parts[#parts + 1] = problems
  end
  return table.concat(parts, " · ")
end

-- The number of undecided hunks.
---@return integer
function Review:left()
  local n = 0
  for _, h in ipairs(self.hunks) do
    n = n + (h.decision and 0 or 1)
  end
  return n
end

local function view()
  return require("pillion.review_view")
end

-- Returns the person's text of a hunk in one of the plugin's buffers (a new file's preview or a side-by-side pane);
-- nil if it is the proposed text.
---@param h pillion.ReviewHunk
---@return string[]?
function Review.text_of(h)
  local preview = h.file.kind == "create" and h.file.buf
  local lines, proposed = nil, h.new
  if preview and compat.loaded(preview) then
    lines = vim.api.nvim_buf_get_lines(preview, 0, -1, false)
    proposed = #h.new > 0 and h.new or { "" }
  elseif h.file.side_by_side then
    lines = require("pillion.review_edit").text(h)
  end
  return lines and not vim.deep_equal(lines, proposed) and lines or nil
end

-- Decides a hunk by the text that replaces it.
---@param h pillion.ReviewHunk
---@param lines string[]
function Review:decide_text(h, lines)
  if vim.deep_equal(lines, h.new) then
    self:decide({ h }, "accept")
  elseif vim.deep_equal(lines, h.old) then
    self:decide({ h }, "reject")
  else
    self:decide({ h }, "edit", { new_lines = lines })
  end
end

-- Returns the file of this review that a buffer shows, as itself or in a side-by-side pane.
---@param buf integer
---@return pillion.ReviewFile?
function Review:file_in(buf)
  local pane = package.loaded["pillion.review_edit"] and require("pillion.review_edit").pane(buf)
  for _, f in ipairs(self.files) do
    if f.buf == buf or pane and pane.file == f then
      return f
    end
  end
end

-- The first file with an undecided hunk.
---@return pillion.ReviewFile?
function Review:first_open_file()
  for _, h in ipairs(self.hunks) do
    if not h.decision then
      return h.file
    end
  end
end

-- Decides hunks. After the last one the answer is sent.
---@param hunks pillion.ReviewHunk[]
---@param decision "accept"|"reject"|"edit"
---@param extra? {new_lines?: string[], comment?: string}
function Review:decide(hunks, decision, extra)
  if self.closed then
    return
  end
  for _, h in ipairs(hunks) do
    h.decision = decision
    h.new_lines = extra and extra.new_lines
    local typed = decision == "accept" and Review.text_of(h)
    if typed then
      h.decision, h.new_lines = "edit", typed
    end
    h.comment = extra and extra.comment or h.comment
    view().clear(h)
  end
  if self:left() == 0 then
    return self:answer()
  end
  self:recheck()
  view().refresh(self)
  if self.session.view then
    self.session.view:changed(self.ask.entry) -- the chat counts the decisions too
  end
  compat.user_event("PillionHunk", { session = self.session.id, left = self:left() })
end

-- Returns the present answer for each hunk. An undecided hunk whose text was changed in one of the plugin's buffers
-- counts as edited.
---@param undecided? boolean include undecided hunks
---@return table<string, {decision: string, newLines?: string[], comment?: string}>
function Review:decisions(undecided)
  local out = {}
  for _, h in ipairs(self.hunks) do
    local typed = undecided and not h.decision and Review.text_of(h)
    if typed then
      out[h.id] = { decision = "edit", newLines = typed }
    elseif h.decision then
      out[h.id] = { decision = h.decision, newLines = h.decision == "edit" and h.new_lines or nil, comment = h.comment }
    end
  end
  return out
end

-- Requests the verdict on the change with the present decisions and edits; undecided hunks count as accepted.
function Review:recheck()
  local process = require("pillion.process")
  if not self.diagnostics or not self.session.view or not process.can("_pillion/change/check") then
    return
  end
  self.checks = (self.checks or 0) + 1
  local check = self.checks
  self.checking = true
  local decisions = self:decisions(true)
  local params = { changeSet = self.ask.meta.changeSet, hunks = next(decisions) and decisions or compat.object() }
  self.session:call("_pillion/change/check", params, function(err, r)
    if self.closed or check ~= self.checks then
      return -- the review was decided since, or a later check has begun
    end
    self.checking = false
    self.diagnostics = not err and r.diagnostics or self.diagnostics
    self:look_at_hunks()
    view().refresh(self)
    self.session.view:changed(self.ask.entry)
  end)
end

-- Requests how each undecided hunk changes the problems. The sidecar names the hunks that a hunk needs only while no
-- hunk is rejected. The answer does not change, so it is kept.
function Review:look_at_hunks()
  local known = self.diagnostics and (self.diagnostics.certainty == "fresh" or self.diagnostics.certainty == "partial")
  for _, h in ipairs(self.hunks) do
    h.effect = nil
  end
  if not known or self:left() < 2 or not require("pillion.process").can("_pillion/change/check") then
    return
  end
  local check, decisions, open = self.checks, self:decisions(true), {}
  for _, h in ipairs(self.hunks) do
    if not h.decision then
      open[#open + 1] = h.id
    end
  end
  local params = { changeSet = self.ask.meta.changeSet, hunks = next(decisions) and decisions or compat.object(), open = open }
  self.session:call("_pillion/change/check", params, function(err, r)
    if self.closed or err or check ~= self.checks then
      return -- effects are optional: the verdict is shown without them
    end
    local rejected = false
    for _, h in ipairs(self.hunks) do
      rejected = rejected or h.decision == "reject"
    end
    for _, h in ipairs(self.hunks) do
      h.effect = (r.effects or {})[h.id]
      if not rejected then
        h.needs = h.effect and h.effect.needs
      end
    end
    view().refresh(self)
  end)
end

-- Says how a hunk changes the problems; "" if it does not.
---@param hunk pillion.ReviewHunk
---@return string
function Review:effect(hunk)
  local parts, e = {}, hunk.effect or {}
  local needed = {}
  for _, id in ipairs(hunk.needs or {}) do
    for _, h in ipairs(self.hunks) do
      if h.id == id then
        needed[#needed + 1] = "hunk " .. h.number
      end
    end
  end
  if #needed > 0 then
    parts[#parts + 1] = "needs " .. table.concat(needed, ", ")
  end
  for _, x in ipairs({ { e.fixes, "fixes %d" }, { e.introduces, "introduces %d" }, { e.ifRejected, "if rejected: introduces %d" } }) do
    if x[1] and #x[1] > 0 then
      parts[#parts + 1] = x[2]:format(#x[1])
    end
  end
  local group = require("pillion.evidence").group(self.evidence, hunk.id)
  if group then
    parts[#parts + 1] = ("%s (%d hunks, one decision)"):format(group.title, #group.hunks)
  end
  return table.concat(parts, " · ")
end

-- Returns the undecided hunks that are one decision with a hunk, including that hunk.
---@param hunk pillion.ReviewHunk
---@return pillion.ReviewHunk[]
function Review:together(hunk)
  local group = require("pillion.evidence").group(self.evidence, hunk.id)
  return group and vim.tbl_filter(function(h)
    return not h.decision and vim.tbl_contains(group.hunks, h.id)
  end, self.hunks) or { hunk }
end

-- Makes hunks undecided again.
---@param hunks? pillion.ReviewHunk[] default all
function Review:reset(hunks)
  for _, h in ipairs(hunks or self.hunks) do
    if h.decision then
      h.decision, h.new_lines, h.reopened = nil, nil, true
      view().clear(h)
    end
  end
  self:recheck()
  view().show(self)
  if self.session.view then
    self.session.view:changed(self.ask.entry)
  end
end

-- Sends the answer: one decision for each hunk.
function Review:answer()
  local decisions, accepted, rejected, edited = self:decisions(), 0, 0, 0
  for _, h in ipairs(self.hunks) do
    if h.decision == "accept" then
      accepted = accepted + 1
    elseif h.decision == "edit" then
      edited = edited + 1
    else
      rejected = rejected + 1
    end
  end
  local ask = self.ask
  local all_rejected = accepted + edited == 0
  local option = approval.option(ask, all_rejected and "reject_once" or "allow_once")
  if not option then
    return log.tell("error", "the request offers no way to " .. (all_rejected and "reject" or "allow") .. " it once")
  end
  local words = {}
  for _, x in ipairs({ { accepted, "accepted" }, { edited, "edited" }, { rejected, "rejected" } }) do
    if x[1] > 0 then
      words[#words + 1] = x[1] .. " " .. x[2]
    end
  end
  approval.choose(ask, option, { hunks = next(decisions) and decisions or compat.object(), comment = self.comment }, table.concat(words, ", "))
end

-- Ends the review and removes its marks and keys from the buffers, whether it was decided or not.
function Review:close()
  if self.closed then
    return
  end
  self.closed = true
  for i, r in ipairs(M.open) do
    if r == self then
      table.remove(M.open, i)
      break
    end
  end
  view().hide(self)
end

---@param ask pillion.Ask
---@return pillion.Review
function M.start(ask)
  local files, hunks = read(ask)
  local self = setmetatable({ ask = ask, session = ask.session, files = files, hunks = hunks, diagnostics = ask.meta.diagnostics, evidence = ask.meta.evidence, closed = false, shown_at = require("pillion.review_keys").now() }, Review)
  table.insert(M.open, self)
  self:look_at_hunks()
  view().show(self)
  local open = config.options.review.open
  if open == "always" or (open == "auto" and ask.session.view and ask.session.view:focused()) then
    view().present(self)
    if config.options.review.layout == "split" then
      require("pillion.review_edit").beside(self)
    end
  end
  if config.options.review.quickfix then
    require("pillion.quickfix").hunks(self, true)
  end
  return self
end

-- The verdict of a proposal may arrive after the proposal is shown.
---@param change pillion.ChangeInfo
function M.checked(change)
  for _, r in ipairs(M.open) do
    if r.ask.meta.changeSet == change.id and change.diagnostics and change.state == "proposed" then
      r.diagnostics, r.evidence = change.diagnostics, change.evidence or r.evidence
      r:look_at_hunks()
      view().refresh(r)
      if r.session.view then
        r.session.view:changed(r.ask.entry)
      end
    end
  end
end

-- Returns the review at the cursor, or the oldest one.
---@return pillion.Review?
function M.current()
  local buf = vim.api.nvim_get_current_buf()
  for _, r in ipairs(M.open) do
    if r:file_in(buf) then
      return r
    end
  end
  local ask = approval.first({ review = true })
  return ask and ask.review
end

return M
