-- Converts entries of a conversation to lines with highlights. It uses no buffer and no window.
local compat = require("pillion.compat")
local config = require("pillion.config")
local paths = require("pillion.paths")

---@class pillion.Rendered
---@field lines string[]
---@field marks table[] {line from 0, first byte, last byte or -1, group}
---@field fold boolean the lines after the first can be folded away
---@field gap boolean an empty line is before it

local M = {}

local max_output = 500 -- lines of a call's output that are shown
local tail = 5 -- lines of output shown while the call runs
local max_diff = 2 * 1024 * 1024

local function lines_of(s)
  local lines = vim.split(s:gsub("\r\n", "\n"), "\n", { plain = true })
  for i, l in ipairs(lines) do
    if l:find("[%z\r]") then
      lines[i] = l:gsub("%z", "␀"):gsub("\r", "␍")
    end
  end
  return lines
end
M.lines_of = lines_of

-- Removes the fence around a whole output: it says nothing in the rendered conversation.
local function unfence(s)
  local fence, body = s:match("^(```+)[^\n]*\n(.*)$")
  if fence and body:sub(-#fence) == fence then
    return (body:sub(1, -#fence - 1):gsub("\n$", ""))
  end
  return s
end

-- Returns the part of a tool's output that a person needs; the tags around it are for the model.
local function for_person(s)
  s = s:gsub("\n*<bash_metadata>\n(.-)\n?</bash_metadata>", function(notes)
    local kept = {}
    for _, l in ipairs(lines_of(notes)) do
      if l ~= "exit code: 0" and l ~= "" then
        kept[#kept + 1] = l
      end
    end
    return #kept > 0 and "\n" .. table.concat(kept, "\n") or ""
  end)
  local body = s:match("^<path>[^\n]*</path>\n<type>[^\n]*</type>\n<content>\n(.*)\n</content>") or s:match("^<path>[^\n]*</path>\n<type>[^\n]*</type>\n<entries>\n(.*)\n</entries>")
  if body then
    s = body:gsub("\n\n%(End of file[^\n]*%)$", "")
  end
  return s
end

local function out_new(gap)
  return { lines = {}, marks = {}, fold = false, gap = gap }
end

local function put(out, line, group, from)
  out.lines[#out.lines + 1] = line
  if group then
    out.marks[#out.marks + 1] = { #out.lines - 1, from or 0, -1, group }
  end
end

local diffs = setmetatable({}, { __mode = "k" })

-- Returns a unified diff, and the numbers of added and removed lines.
---@param d {path: string, oldText?: string, newText?: string}
---@return string[] lines
---@return integer added
---@return integer removed
function M.diff(d)
  if diffs[d] then
    return unpack(diffs[d])
  end
  local old, new = d.oldText or "", d.newText or ""
  local lines, added, removed = {}, 0, 0
  if #old + #new > max_diff then
    lines = { "(too large to show here)" }
  else
    local text = compat.diff(old, new, { result_type = "unified", ctxlen = 2 })
    for _, l in ipairs(lines_of(text)) do
      local c = l:sub(1, 1)
      if c == "+" then
        added = added + 1
      elseif c == "-" then
        removed = removed + 1
      end
      if l ~= "" and not l:match("^\\ No newline") then
        lines[#lines + 1] = l
      end
    end
  end
  diffs[d] = { lines, added, removed }
  return lines, added, removed
end

local function put_diff(out, d, with_name)
  local lines = M.diff(d)
  if with_name then
    put(out, "  " .. paths.short(d.path), "PillionHint")
  end
  for _, l in ipairs(lines) do
    local c = l:sub(1, 1)
    put(out, "  " .. l, c == "+" and "PillionAdd" or c == "-" and "PillionDelete" or c == "@" and "PillionHint" or nil, 2)
  end
end

local function tool(entry, gap)
  local out = out_new(gap)
  local call = entry.call
  local icons = config.options.chat.icons
  local status = call.status or "pending"
  local icon = ({ completed = icons.completed, failed = icons.failed, in_progress = icons.running, pending = icons.running })[status] or icons.running
  local group = ({ completed = "PillionDone", failed = "PillionFailed" })[status] or "PillionRunning"
  local title = (call.title or call.name or call.toolCallId or "?"):gsub("\n.*", " …")
  if call.name and title:sub(1, #call.name) ~= call.name then
    title = call.name .. " " .. title
  end
  local added, removed, texts, changes = 0, 0, {}, {}
  for _, c in ipairs(call.content or {}) do
    if c.type == "diff" then
      local _, a, r = M.diff(c)
      added, removed = added + a, removed + r
      changes[#changes + 1] = c
    elseif c.type == "content" and c.content then
      local s = c.content.type == "text" and for_person(unfence(c.content.text or "")) or require("pillion.session").content_text(c.content)
      if s ~= "" then
        texts[#texts + 1] = s
      end
    end
  end
  local reason = status == "failed" and require("pillion.approval").reason(call)
  if reason then
    texts = { reason .. "." }
  end
  local outcome = entry.call._meta and entry.call._meta.pillion and entry.call._meta.pillion.outcome
  if outcome and outcome ~= "applied" then
    title = title .. "  (" .. outcome .. ")"
  end
  local head = icon .. " " .. title
  if #changes > 0 then
    head = head .. ("  +%d -%d"):format(added, removed)
  end
  put(out, head, group)
  out.marks[1][3] = #icon
  out.marks[#out.marks + 1] = { 0, #icon + 1, -1, "PillionTool" }
  local done = status == "completed" or status == "failed"
  if done then
    for _, c in ipairs(changes) do
      put_diff(out, c, #changes > 1)
    end
  end
  for _, s in ipairs(texts) do
    local lines = lines_of(s)
    local first, last = 1, #lines
    if not done then
      first = math.max(1, last - tail + 1)
    elseif last > max_output then
      last = max_output
    end
    for i = first, last do
      put(out, "  " .. lines[i])
    end
    if done and #lines > last then
      put(out, ("  … %d more lines"):format(#lines - last), "PillionHint")
    end
  end
  out.fold = done and #out.lines > 1 and config.options.chat.fold_tools
  return out
end

local function plan(entry, gap)
  local out = out_new(gap)
  put(out, "Plan", "PillionHead")
  local marks = { completed = "[x]", in_progress = "[~]", pending = "[ ]" }
  for _, e in ipairs(entry.plan) do
    put(out, ("- %s %s"):format(marks[e.status] or "[ ]", (e.content:gsub("\n", " "))), e.status == "completed" and "PillionHint" or e.status == "in_progress" and "PillionRunning" or nil)
  end
  return out
end

local function ask(entry, gap)
  local out = out_new(gap)
  local a = entry.ask
  local icons = config.options.chat.icons
  local open = a.state == "open"
  local title = lines_of(a.title)
  put(out, (open and icons.pending or "•") .. " " .. title[1], open and "PillionAsk" or "PillionHint")
  for i = 2, #title do
    put(out, "  " .. title[i])
  end
  if not open then
    put(out, "  " .. (a.answer or ""), "PillionInfo")
    return out
  end
  if a.review then
    local head = a.review:headline()
    put(out, "  " .. head, "PillionHead")
    for _, f in ipairs(a.review.files) do
      put(out, ("  %s%s"):format(paths.short(f.path, a.session.cwd), f.new_path and (" → " .. paths.short(f.new_path, a.session.cwd)) or f.kind ~= "edit" and (" (" .. f.kind .. ")") or ""))
    end
    local d = a.review.diagnostics
    for i, p in ipairs(d and d.introduced or {}) do
      if i > 5 then
        put(out, ("  … %d more"):format(#d.introduced - 5), "PillionHint")
        break
      end
      put(out, ("  %s:%d:%d %s"):format(paths.short(p.path, a.session.cwd), p.line, p.column, (p.message:gsub("\n", " "))), "PillionError")
    end
    for _, l in ipairs(require("pillion.evidence").lines(a.review.evidence, a.session.cwd)) do
      put(out, "  " .. l[1], l[2])
    end
  else
    for _, c in ipairs(a.call.content or {}) do
      if c.type == "content" and c.content and c.content.text then
        for i, l in ipairs(lines_of(unfence(c.content.text))) do
          if i <= 20 then
            put(out, "  " .. l)
          end
        end
      elseif c.type == "diff" then
        put_diff(out, c, true)
      end
    end
  end
  if a.kind == "form" then
    put(out, "  <CR> here or :Pillion answer", "PillionHint")
    return out
  end
  for i, o in ipairs(a.options) do
    put(out, ("  (%d) %s"):format(i, o.name), "PillionOption", 2)
    out.marks[#out.marks][3] = 5
  end
  put(out, a.review and "  :Pillion review goes through the hunks; a number here decides about all" or "  a number here, or :Pillion accept, :Pillion reject [why]", "PillionHint")
  return out
end

---@param entry pillion.Entry
---@param before? pillion.Entry
---@return pillion.Rendered
function M.render(entry, before)
  local small = { tool = true, thought = true }
  local gap = before ~= nil and not (small[entry.kind] and small[before.kind])
  local icons = config.options.chat.icons
  if entry.kind == "tool" then
    return tool(entry, gap)
  elseif entry.kind == "plan" then
    return plan(entry, gap)
  elseif entry.kind == "ask" then
    return ask(entry, gap)
  end
  local out = out_new(gap)
  local text = entry.text or table.concat(entry.pieces or {}):gsub("\n+$", "")
  if entry.kind == "user" then
    for i, l in ipairs(lines_of(text)) do
      put(out, (i == 1 and icons.user .. " " or "  ") .. l, l:match("^%+ ") and i > 1 and "PillionAttached" or "PillionUser")
    end
    if entry.waiting then
      put(out, "  waits for the turn that runs", "PillionHint")
    end
  elseif entry.kind == "thought" then
    put(out, icons.thought .. " Thought", "PillionThought")
    for _, l in ipairs(lines_of(text)) do
      put(out, "  " .. l, "PillionThought")
    end
    out.fold = config.options.chat.fold_thoughts
  elseif entry.kind == "notice" then
    local group = ({ warning = "PillionWarning", error = "PillionError" })[entry.level] or "PillionInfo"
    for _, l in ipairs(lines_of(text)) do
      put(out, l, group)
    end
  else
    for _, l in ipairs(lines_of(text)) do
      put(out, l)
    end
  end
  return out
end

return M
