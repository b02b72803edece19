-- One session: its conversation as entries, what is running, its settings. Views are notified about changes.
local compat = require("pillion.compat")

---@class pillion.Entry
---@field kind "user"|"agent"|"thought"|"tool"|"plan"|"notice"|"ask"|"end"
---@field text? string
---@field pieces? string[] of a text that is still being streamed
---@field message? string messageId
---@field call? table the tool call with all its updates
---@field plan? table[]
---@field level? string
---@field ask? pillion.Ask

---@class pillion.SessionView
---@field added fun(self, entry: pillion.Entry)
---@field appended fun(self, entry: pillion.Entry, text: string)
---@field changed fun(self, entry: pillion.Entry)
---@field status fun(self)
---@field reset fun(self)

---@class pillion.Session
---@field id? string
---@field cwd string
---@field title? string
---@field entries pillion.Entry[]
---@field running integer prompts without an answer
---@field options table[] configuration options
---@field commands table[] slash commands
---@field usage? table
---@field queue table[] queued prompts
---@field attached pillion.Context[] for the next prompt
---@field view? pillion.SessionView
local Session = {}
Session.__index = Session

local M = {
  ---@type table<string, pillion.Session>
  by_id = {},
  ---@type pillion.Session?
  current = nil,
}

local function new(cwd)
  return setmetatable({ cwd = cwd, entries = {}, calls = {}, running = 0, options = {}, commands = {}, queue = {}, attached = {}, state = "new" }, Session)
end

-- Notifies the view, if there is one.
---@param what string method of pillion.SessionView
function Session:tell(what, ...)
  if self.view then
    self.view[what](self.view, ...)
  end
end

-- Called when the state of the session has changed: views and statuslines are drawn again.
function Session:status()
  self:tell("status")
  compat.user_event("PillionStatus", { session = self.id })
end

---@param entry pillion.Entry
---@return pillion.Entry
function Session:add(entry)
  table.insert(self.entries, entry)
  self:tell("added", entry)
  return entry
end

---@param entry pillion.Entry
function Session:remove(entry)
  for i, e in ipairs(self.entries) do
    if e == entry then
      table.remove(self.entries, i)
      return self:tell("reset")
    end
  end
end

-- Adds a line that Pillion itself writes to the conversation.
---@param level "info"|"warning"|"error"
---@param words string
function Session:note(level, words)
  self:add({ kind = "notice", level = level, text = words })
end

local function content_text(block)
  if type(block) ~= "table" then
    return ""
  end
  if block.type == "text" then
    return block.text or ""
  elseif block.type == "image" then
    return "(image" .. (block.mimeType and (", " .. block.mimeType) or "") .. ")"
  elseif block.type == "resource_link" then
    return "(" .. (block.name or block.uri or "file") .. ")"
  elseif block.type == "resource" and block.resource then
    return "(" .. (block.resource.uri or "text") .. ")"
  end
  return ""
end
M.content_text = content_text

-- Adds a piece of text to the last entry if it belongs to it; else it begins an entry.
---@param kind "user"|"agent"|"thought"
---@param u table ContentChunk
function Session:chunk(kind, u)
  local words = content_text(u.content)
  if words == "" then
    return
  end
  local last = self.entries[#self.entries]
  if last and last.kind == kind and (kind ~= "user" or last.message == u.messageId) and not last.closed then
    last.pieces[#last.pieces + 1] = words
    return self:tell("appended", last, words)
  end
  self:add({ kind = kind, pieces = { words }, message = u.messageId })
end

-- Adds a tool call, or an update of one.
---@param u table ToolCall or ToolCallUpdate
function Session:tool(u)
  local entry = self.calls[u.toolCallId]
  if not entry then
    entry = { kind = "tool", call = {} }
    self.calls[u.toolCallId] = entry
    for k, v in pairs(u) do
      entry.call[k] = v
    end
    self:add(entry)
  else
    for k, v in pairs(u) do
      entry.call[k] = v
    end
    self:tell("changed", entry)
  end
  if u.status == "failed" then
    require("pillion.approval").not_applied(self, entry.call)
  end
  if u.status == "completed" and (entry.call.kind == "execute" or entry.call.kind == "edit" or entry.call.kind == "delete" or entry.call.kind == "move") then
    M.check_disk()
  end
end

local checking = false
-- Reads changed buffers from the disk soon after something may have changed their files.
function M.check_disk()
  if not checking then
    checking = true
    vim.defer_fn(function()
      checking = false
      require("pillion.buffers").check_disk()
    end, 100)
  end
end

---@param u table SessionUpdate; an unknown kind is ignored
function Session:update(u)
  local f = require("pillion.session_updates")[u.sessionUpdate]
  if f then
    f(self, u)
  end
end

-- Stores the value of an option that was changed elsewhere.
---@param id string
---@param value string
function Session:set_current(id, value)
  for _, o in ipairs(self.options) do
    if o.id == id then
      o.currentValue = value
    end
  end
  self:status()
end

-- The current value of an option: mode, model, thought_level.
---@param id string
---@return table?
function Session:option(id)
  for _, o in ipairs(self.options) do
    if o.id == id then
      return o
    end
  end
end

-- Called when a change set has a new state or verdict.
---@param change pillion.ChangeInfo
function Session:change_updated(change)
  compat.user_event("PillionChange", { session = self.id, change = change })
  require("pillion.review").checked(change)
  require("pillion.follow").changed(self, change)
end

-- Called when the queued prompts have changed.
---@param items? table[]
---@param held? boolean the queue waits for `:Pillion queue resume`
function Session:queue_updated(items, held)
  self.queue = items or {}
  if held and not self.held and #self.queue > 0 then
    self:note("info", ("%d queued prompt%s held; :Pillion queue resume sends %s."):format(#self.queue, #self.queue == 1 and " is" or "s are", #self.queue == 1 and "it" or "them"))
  end
  self.held = held
  self:status()
end

-- Called for a turn that this client did not start (a queued prompt); there is no other sign of it.
---@param status pillion.SessionStatusResponse
function Session:status_updated(status)
  local was = self.elsewhere
  self.elsewhere, self.turn = status.state ~= "idle", status.turn
  if was and not self.elsewhere and self.running == 0 then
    self:ended()
  end
  self:status()
end

-- Called when the conversation was restored to the state before a prompt. Without a prompt it is complete again, and
-- updates follow.
---@param message? string messageId
function Session:reverted(message)
  if not message then
    self.entries, self.calls, self.plan = {}, {}, nil
    return self:tell("reset")
  end
  for i, e in ipairs(self.entries) do
    if e.kind == "user" and e.message == message then
      while #self.entries >= i do
        table.remove(self.entries)
      end
      break
    end
  end
  self:tell("reset")
end

require("pillion.session_turns")(Session)

-- A session of another ACP client in this Neovim: it only has open reviews, and no view shows it.
---@param id string
---@return pillion.Session
function M.guest(id)
  local s = new(vim.fn.getcwd())
  s.id, s.state = id, "ready"
  return s
end

---@param cwd? string
---@return pillion.Session
function M.create(cwd)
  local s = new(cwd or vim.fn.getcwd())
  M.current = s
  return s
end

-- Opens a stored session; with replay the sidecar sends its conversation as updates.
---@param id string
---@param cwd string
---@param replay boolean
---@return pillion.Session
function M.stored(id, cwd, replay)
  local s = M.by_id[id]
  if not s then
    s = new(cwd)
    s.id, s.replay = id, replay
    M.by_id[id] = s
  end
  M.current = s
  return s
end

---@return pillion.Session
function M.get()
  return M.current or M.create()
end

-- Marks every session as lost, because the sidecar has ended.
---@param e {code: integer, wanted: boolean, said: string} how it ended
function M.lost(e)
  for _, s in pairs(M.by_id) do
    s.state = "lost"
    if s.elsewhere and not e.wanted then
      s:note("error", "The sidecar ended during this turn" .. e.said .. ". Changes that were already applied are kept.")
    end
    s.elsewhere, s.running = false, 0
    s:status()
  end
end

-- After a crash, opens the sessions again in the new sidecar.
function M.reopen()
  for _, s in pairs(M.by_id) do
    if s.state == "lost" then
      s:open(function(err)
        s:note(err and "error" or "info", err and ("The session could not be reopened: " .. err) or "The sidecar was restarted; the session continues.")
      end)
    end
  end
end

return M
