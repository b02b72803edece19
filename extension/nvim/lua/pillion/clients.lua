-- Pillion's hunk review for other ACP clients in this Neovim. Such a client runs `pillion acp` itself and shows the
-- conversation; this module answers its permission requests for proposals, hunk by hunk, in the file's own window.
--
--   require("pillion.clients").codecompanion()   -- after CodeCompanion's setup()
--   require("pillion.clients").agentic()         -- after agentic.nvim's setup()
--
-- Another client calls review() where it handles `session/request_permission`, and finish() when a turn ends. The client
-- must announce `clientCapabilities._meta.pillion.hunks = true` in `initialize`, which the two functions above do.
local approval = require("pillion.approval")

local M = {}

---@type table<string, pillion.Session> by the client's session id
local guests = {}

-- A client adds this to its `clientCapabilities`, so that requests contain hunks and answers may decide on them.
M.capability = { pillion = { version = 1, hunks = true } }

-- Shows a permission request as a review. Returns false if it is not a proposal of Pillion; the client then asks as
-- usual.
---@param params table RequestPermissionRequest
---@param respond fun(result: table) called once, with the RequestPermissionResponse
---@return boolean
function M.review(params, respond)
  local call = type(params) == "table" and params.toolCall
  local meta = call and call._meta and call._meta.pillion
  if not (meta and meta.changeSet and meta.files) then
    return false
  end
  local session = guests[params.sessionId] or require("pillion.session").guest(params.sessionId)
  guests[params.sessionId] = session
  approval.request(session, params, function(result)
    respond(result or { outcome = { outcome = "cancelled" } })
  end, {})
  return true
end

-- Closes the open requests of a session whose turn was stopped or has ended.
---@param session_id string
function M.finish(session_id)
  for _, ask in ipairs({ unpack(approval.open) }) do
    if guests[session_id] and ask.session == guests[session_id] then
      approval.cancel(ask)
    end
  end
end

-- Replaces a method of another plugin once; the original is called for everything that is not Pillion's.
local function wrap(class, name, f)
  local original = class[name]
  assert(type(original) == "function", ("pillion.clients: this version of the plugin has no %s; update Pillion"):format(name))
  class[name] = function(...)
    return f(original, ...)
  end
end

local done = {}

-- Shows the proposals in CodeCompanion's ACP chats as reviews.
function M.codecompanion()
  if done.codecompanion then
    return
  end
  done.codecompanion = true
  local builder = require("codecompanion.acp.prompt_builder")
  wrap(builder, "handle_permission_request", function(original, self, id, params)
    local ours = id and params and M.review(params, function(result)
      self.connection:send_result(id, result)
    end)
    return ours or original(self, id, params)
  end)
  wrap(require("codecompanion.acp"), "send_rpc_request", function(original, self, method, params)
    if method == "initialize" then
      params = vim.tbl_deep_extend("force", params or {}, { clientCapabilities = { _meta = M.capability } })
    end
    return original(self, method, params)
  end)
  wrap(builder, "handle_done", function(original, self, ...)
    M.finish(self.connection.session_id)
    return original(self, ...)
  end)
  wrap(builder, "cancel", function(original, self, ...)
    M.finish(self.connection.session_id)
    return original(self, ...)
  end)
end

-- Shows the proposals in agentic.nvim's sessions as reviews.
function M.agentic()
  if done.agentic then
    return
  end
  done.agentic = true
  local client = require("agentic.acp.acp_client")
  wrap(client, "_handle_request_permission", function(original, self, id, params)
    local meta = params and params.toolCall and params.toolCall._meta
    if not (meta and meta.pillion) then
      return original(self, id, params)
    end
    vim.schedule(function()
      if not M.review(params, function(result)
        self:_send_result(id, result)
      end) then
        original(self, id, params)
      end
    end)
  end)
  wrap(client, "_initialize", function(original, self, ...)
    self.capabilities = vim.tbl_deep_extend("force", self.capabilities or {}, { _meta = M.capability })
    return original(self, ...)
  end)
  wrap(client, "cancel_session", function(original, self, session_id, ...)
    M.finish(session_id)
    return original(self, session_id, ...)
  end)
end

return M
